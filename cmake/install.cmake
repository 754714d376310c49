# What an installation consists of besides the binary: the man page, an example configuration, the systemd unit.
# The unit names the installed binary, so it is made for the prefix chosen at configure time.
configure_file(${PROJECT_SOURCE_DIR}/deploy/systemd/subzero.service.in ${CMAKE_BINARY_DIR}/subzero.service @ONLY)

install(FILES ${CMAKE_BINARY_DIR}/subzero.service DESTINATION lib/systemd/system)
install(FILES docs/subzero.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY deploy/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
