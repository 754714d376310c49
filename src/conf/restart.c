/* What a reload leaves as it was, because only a new process can change it: the rows that say so. */
#include "conf/dump.h"
#include "conf/node.h"
#include "conf/raw.h"

static void compare_field(const char *path, const struct sz_field *f, const void *a, const void *c, struct sz_buf *out)
{
    struct sz_buf ta = {0}, tc = {0};
    sz_dump_field(&(struct sz_dump){.out = &ta, .whole = true}, f, a, 0);
    sz_dump_field(&(struct sz_dump){.out = &tc, .whole = true}, f, c, 0);
    if (!sz_eq(sz_buf_slice(&ta), sz_buf_slice(&tc)))
        sz_buf_printf(out, "'%s%s' changed\n", path, f->name);
    sz_buf_fini(&ta);
    sz_buf_fini(&tc);
}

/* An optional object that is in one of them alone: what it says counts, what it leaves out does not. */
static bool is_said(const struct sz_field *f, const void *a, const void *c)
{
    const struct sz_raw_head *heads[] = {a, c};
    if ((heads[0]->node == NULL) == (heads[1]->node == NULL))
        return true;
    return sz_node_get(heads[heads[0]->node == NULL]->node, f->name) != NULL;
}

static void compare(const char *path, const struct sz_object *object, const void *a, const void *c, struct sz_buf *out)
{
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        if ((f->flags & SZ_FIELD_RESTART) != 0) {
            if (is_said(f, a, c))
                compare_field(path, f, a, c, out);
        } else if (f->type == SZ_F_OBJECT) {
            struct sz_text below;
            sz_text_set(&below, "%s%s.", path, f->name);
            compare(below.s, f->object, sz_field_at(f, a), sz_field_at(f, c), out);
        }
    }
}

void sz_conf_restart_needed(const struct sz_conf *now, const struct sz_conf *next, struct sz_buf *out)
{
    compare("", &sz_schema, now->raw, next->raw, out);
}
