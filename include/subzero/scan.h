/*
 * Is every byte of a run of the allowed kind?  The grammars a request's bytes are held to, sixteen bytes at a
 * time: tokens and header values are most of what a request consists of.  Pure, any thread.
 */
#ifndef SUBZERO_SCAN_H
#define SUBZERO_SCAN_H

#include "subzero/base.h"

/* RFC 9110 5.6.2 tchar; false when empty. */
bool sz_scan_token(struct sz_slice s);
/* 0x20 to 0x7E alone. */
bool sz_scan_printable(struct sz_slice s);
/* The same without " and \: what stands in a JSON string as it is. */
bool sz_scan_json_plain(struct sz_slice s);
/* RFC 9110 5.5 field value: visible, blank, tab and 8-bit octets; no other control character, no DEL. */
bool sz_scan_field_value(struct sz_slice s);
/* Neither blank nor control character nor DEL: a request target before it is parsed; false when empty. */
bool sz_scan_target(struct sz_slice s);
/* RFC 6750 b64token: ALPHA DIGIT - . _ ~ + / and then any number of "="; false when nothing stands before them. */
bool sz_scan_b64token(struct sz_slice s);

#endif
