# What an installation consists of besides the binary: the systemd unit, the man page, the documents, the examples.
# The unit names the installed binary, so it is made when the prefix is known: `cmake --install --prefix` may change it.
install(CODE "
  set(SZ_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/deploy/systemd/subzero.service.in\" \"${CMAKE_BINARY_DIR}/subzero.service\" @ONLY)
")
install(FILES ${CMAKE_BINARY_DIR}/subzero.service DESTINATION lib/systemd/system)
install(FILES docs/subzero.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md CHANGELOG.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")
install(DIRECTORY deploy/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
