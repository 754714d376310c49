"""Random models, tuples and questions put to two servers of OpenFGA's HTTP API; their answers and error codes must be equal.

usage: fga_random.py [--seed N] [--rounds N] [--questions N] [--key KEY] OURS THEIRS       (http://HOST:PORT)

Each round makes a model (operators nested, usersets, parents, wildcards, conditions of every type), which both must take or both
refuse with one code; then tuples, good and bad, written one call each and in batches; then checks, batches, lists of objects
and users, expansions, reads and changes, with contexts and contextual tuples that are sometimes wrong.  Exits 1 and prints the
shortest way to repeat each difference.
"""

import argparse
import http.client
import json
import random
import sys
import urllib.parse

IDS = ["a", "b", "c"]


class Server:
    def __init__(self, url, key):
        self.where = urllib.parse.urlsplit(url)
        self.fields = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self.connection = None
        self.store = self.model = None

    def call(self, method, path, body=None):
        for attempt in range(2):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.where.hostname, self.where.port, timeout=60)
            try:
                data = json.dumps(body) if body is not None else None
                self.connection.request(method, path, data, self.fields)
                answer = self.connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt:
                    raise
        try:
            return answer.status, json.loads(text) if text else {}
        except ValueError:
            return answer.status, {"text": text.decode(errors="replace")}

    def make_store(self):
        status, answer = self.call("POST", "/stores", {"name": "random"})
        assert status == 201, answer
        self.store = answer["id"]

    def ask(self, method, path, body=None):
        if body is not None and self.model and "authorization_model_id" in body:
            body = dict(body, authorization_model_id=self.model)
        return self.call(method, f"/stores/{self.store}{path}", body)


# ---- models ----

class Model:
    """Random; most are valid, some have one fault of every kind."""

    TYPES = ["user", "robot", "group", "folder", "doc"]
    PARAMS = {"i": "TYPE_NAME_INT", "u": "TYPE_NAME_UINT", "d": "TYPE_NAME_DOUBLE", "s": "TYPE_NAME_STRING", "b": "TYPE_NAME_BOOL",
              "t": "TYPE_NAME_TIMESTAMP", "r": "TYPE_NAME_DURATION", "p": "TYPE_NAME_IPADDRESS", "l": "list", "m": "map", "a": "TYPE_NAME_ANY"}
    EXPRESSIONS = ["i > 3", "i + 1 == 4 || i < 0", "u >= 2u", "d < 1.5", "s == 'x'", "s.startsWith('x') && !s.endsWith('z')", "b", "!b",
                   "t < timestamp('2024-01-01T00:00:00Z')", "r > duration('1h')", "p.in_cidr('10.0.0.0/8')", "'x' in l", "l.exists(e, e == 'x')",
                   "l.all(e, e != 'q')", "size(l) > 1", "m['k'] == 'v'", "'k' in m", "i > 3 && s == 'x'", "b || i > 100", "s.matches('^x+$')",
                   "t + r > timestamp('2024-01-01T00:00:00Z')", "i % 2 == 0", "i * 2 > 5 ? b : !b", "s in ['x', 'y']", "d == 1.0", "m.k == 'v'",
                   "l[0] == 'x'", "i / 2 == 1", "s + 'y' == 'xy'", "size(s) == 1", "t.getHours() < 12", "a == 1", "l.exists_one(e, e == 'x')",
                   "i - 5 > -3", "-i < 0", "u + 1u == 3u", "r == duration('90m')", "p == ipaddress('10.0.0.1')", "size(m) == 1", "m == {'k': 'v'}"]
    BAD_EXPRESSIONS = ["i", "nope > 1", "i > 's'", "i >", "s > 3", "u > 1", "unknown(i)", "i = 1", "d == 1", "l == 1"]

    def __init__(self, rng):
        self.rng = rng
        self.relations = {"group": ["member", "admin"], "folder": ["parent", "viewer", "editor"], "doc": ["parent", "owner", "viewer", "can", "odd"]}
        self.conditions = {}
        for n in range(rng.randrange(3)):
            self.condition(f"c{n}")
        self.types = {}
        for name in self.TYPES:
            self.types[name] = {r: self.relation(name, r) for r in self.relations.get(name, [])}
        self.fault()

    def condition(self, name):
        expression = self.rng.choice(self.EXPRESSIONS)
        if self.rng.random() < 0.02:
            expression = self.rng.choice(self.BAD_EXPRESSIONS)
        names = [p for p in self.PARAMS if any(c == p and (i == 0 or not expression[i - 1].isalnum() and expression[i - 1] not in "'.")
                 and (i + 1 == len(expression) or not expression[i + 1].isalnum() and expression[i + 1] != "'") for i, c in enumerate(expression))]
        if self.rng.random() < 0.2:
            names.append(self.rng.choice(list(self.PARAMS)))
        self.conditions[name] = (expression, sorted(set(names) or {"i"}))

    def parameter(self, p):
        kind = self.PARAMS[p]
        if kind == "list":
            return {"type_name": "TYPE_NAME_LIST", "generic_types": [{"type_name": "TYPE_NAME_STRING"}]}
        if kind == "map":
            return {"type_name": "TYPE_NAME_MAP", "generic_types": [{"type_name": "TYPE_NAME_STRING"}]}
        return {"type_name": kind}

    def restriction(self, type_name, relation):
        rng = self.rng
        if relation == "parent":
            return {"type": rng.choice(["folder", "folder", "doc"] if type_name == "doc" else ["folder"])}
        kind = rng.randrange(10)
        if kind < 4:
            out = {"type": rng.choice(["user", "user", "robot"])}
        elif kind < 6:
            out = {"type": rng.choice(["user", "user", "robot"]), "wildcard": {}}
        elif kind < 9:
            out = {"type": "group", "relation": rng.choice(["member", "member", "admin"])}
        else:
            other = rng.choice(["folder", "doc"])
            out = {"type": other, "relation": rng.choice([r for r in self.relations[other] if r != "parent"])}
        if self.conditions and rng.random() < 0.3:
            out["condition"] = rng.choice(list(self.conditions))
        return out

    def rewrite(self, type_name, relation, depth, direct):
        rng = self.rng
        kind = rng.randrange(10)
        if depth > 0 and kind < 4:
            children = [self.rewrite(type_name, relation, depth - 1, direct) for _ in range(rng.choice([2, 2, 3]))]
            if kind < 2:
                return {"union": {"child": children}}
            if kind == 2:
                return {"intersection": {"child": children[:2]}}
            return {"difference": {"base": children[0], "subtract": children[1]}}
        others = [r for r in self.relations[type_name] if r not in (relation, "parent")]
        if kind < 6 and others:
            return {"computedUserset": {"relation": rng.choice(others)}}
        if kind < 8 and "parent" in self.relations[type_name]:
            return {"tupleToUserset": {"tupleset": {"relation": "parent"}, "computedUserset": {"relation": rng.choice(["viewer", "editor", "owner"][:2])}}}
        direct.append(True)
        return {"this": {}}

    def relation(self, type_name, relation):
        rng = self.rng
        direct = []
        if relation == "parent" or rng.random() < 0.35:
            rewrite = {"this": {}}
            direct.append(True)
        else:
            rewrite = self.rewrite(type_name, relation, 2, direct)
            if rng.random() < 0.5:
                rewrite = {"union": {"child": [{"this": {}}, rewrite]}}
                direct.append(True)
        restrictions = []
        if direct:
            for _ in range(rng.choice([1, 1, 2, 3])):
                one = self.restriction(type_name, relation)
                if one not in restrictions:
                    restrictions.append(one)
        return [rewrite, restrictions]

    def fault(self):
        """Once in a while, one thing that is wrong."""
        rng, self.schema, self.extra = self.rng, "1.1", []
        if rng.random() > 0.12:
            return
        which = rng.randrange(13)
        type_name = rng.choice(["group", "folder", "doc"])
        relation = rng.choice([r for r in self.relations[type_name] if r != "parent"])
        one = self.types[type_name][relation]
        if which == 0:
            one[1] = one[1] + [{"type": "nope"}]
        elif which == 1:
            one[1] = one[1] + [{"type": "group", "relation": "nope"}]
        elif which == 2:
            one[1] = one[1] + [{"type": "user", "condition": "nope"}]
        elif which == 3:
            one[1] = []
        elif which == 4:
            one[0] = {"computedUserset": {"relation": "nope"}}
        elif which == 5:
            one[0] = {"computedUserset": {"relation": relation}}
        elif which == 6:
            one[0] = {"tupleToUserset": {"tupleset": {"relation": "nope"}, "computedUserset": {"relation": "viewer"}}}
        elif which == 7:
            self.types["doc"]["parent"][1] = [{"type": "folder", "wildcard": {}}]
        elif which == 8:
            self.types["doc"]["parent"][1] = [{"type": "group", "relation": "member"}]
        elif which == 9:
            one[0] = {"union": {"child": []}}
        elif which == 10:
            self.schema = rng.choice(["1.0", "1.2", "2", ""])
        elif which == 11:
            self.extra = [{"type": "user"}]
        else:
            self.types["self"] = {}

    def json(self):
        definitions = []
        for name, relations in self.types.items():
            one = {"type": name}
            if relations:
                one["relations"] = {r: rewrite for r, (rewrite, _) in relations.items()}
                one["metadata"] = {"relations": {r: {"directly_related_user_types": restrictions} for r, (_, restrictions) in relations.items()}}
            definitions.append(one)
        return {"schema_version": self.schema, "type_definitions": definitions + self.extra,
                "conditions": {name: {"name": name, "expression": expression, "parameters": {p: self.parameter(p) for p in names}}
                               for name, (expression, names) in self.conditions.items()}}


# ---- tuples and questions ----

VALUES = {
    "i": [1, 2, 3, 4, 5, -1, 0, "3", "4", 101], "u": [1, 2, 3, "2"], "d": [1, 1.0, 1.4, 2.5, "1.25", -3], "s": ["x", "xx", "y", "xz", ""], "b": [True, False],
    "t": ["2023-06-01T10:00:00Z", "2024-06-01T13:00:00+02:00", "2023-12-31T23:30:00.5Z"], "r": ["90m", "1h", "2h30m", "30s", "-1h", "0"],
    "p": ["10.1.2.3", "192.168.0.1", "::ffff:10.0.0.1", "10.0.0.1", "fe80::1"], "l": [["x"], ["x", "q"], [], ["a", "b", "x", "x"]],
    "m": [{"k": "v"}, {}, {"k": "w", "j": "v"}], "a": [1, "x", True, None, [1], {"k": 1}, 1.5],
}
BAD_VALUES = {
    "i": [1.5, "x", True, None, [], "1.0", 1e30], "u": [-1, "x", 1.5], "d": ["x", True, None, "inf", "NaN"], "s": [1, None, True, ["x"]], "b": ["true", 1, None],
    "t": ["yesterday", 5, "2024-01-01", None], "r": ["1 hour", 5, "1d", None], "p": ["10.0.0", "x", 1, "10.0.0.256"], "l": ["x", [1], {"0": "x"}, None], "m": [["k"], {"k": 1}, "k"],
    "a": [1],
}


class Questions:
    def __init__(self, rng, model):
        self.rng, self.model = rng, model
        self.bad = 0.04

    def id(self):
        return self.rng.choice(IDS)

    def object(self, type_name=None):
        rng = self.rng
        if rng.random() < self.bad / 2:
            return rng.choice(["doc", "doc:", ":a", "nope:a", "doc:a#viewer", "doc:*", "doc:a b", "", "doc:a:b", "d" * 255 + ":a", "doc:" + "x" * 253])
        return f"{type_name or rng.choice(['group', 'folder', 'doc', 'doc'])}:{self.id()}"

    def user(self):
        rng = self.rng
        if rng.random() < self.bad / 2:
            return rng.choice(["user", "user:", ":a", "*", "nope:a", "user:a#member", "group:a#nope", "user:a b", "", "group:*#member", "user:a:b", "a#b", "user:" + "x" * 508,
                               "group:a#", "nope:*", "user:*:a", "user:a#b#c"])
        kind = rng.randrange(12)
        if kind < 6:
            return f"user:{self.id()}"
        if kind < 7:
            return f"robot:{self.id()}"
        if kind < 8:
            return rng.choice(["user:*", "robot:*", "user:*"])
        if kind < 11:
            return f"group:{self.id()}#{rng.choice(['member', 'admin'])}"
        other = rng.choice(["folder", "doc"])
        return f"{other}:{self.id()}" if rng.random() < 0.4 else f"{other}:{self.id()}#{rng.choice(self.model.relations[other])}"

    def relation(self, type_name=None):
        rng = self.rng
        if rng.random() < self.bad / 2:
            return rng.choice(["nope", "", "a b", "viewer#x", "x" * 51, "a:b", "viewer@"])
        return rng.choice(self.model.relations.get(type_name, ["viewer", "member"]))

    def values(self, names, full):
        rng, out = self.rng, {}
        for p in names:
            if rng.random() < (0.97 if full else 0.5):
                out[p] = rng.choice(BAD_VALUES[p] if rng.random() < 0.04 else VALUES[p])
        return out

    def context(self):
        rng = self.rng
        if rng.random() < 0.1:
            return None
        names = sorted({p for _, names in self.model.conditions.values() for p in names})
        out = self.values(names, True)
        if rng.random() < 0.1:
            out["undeclared"] = rng.choice([1, "x", None, {"a": [1]}])
        return out

    def tuple(self):
        """Mostly one that the model admits."""
        rng = self.rng
        type_name = rng.choice(["group", "folder", "doc", "doc"])
        relation = self.relation(type_name)
        admitted = self.model.types.get(type_name, {}).get(relation, [None, []])[1]
        user, condition = self.user(), None
        if admitted and rng.random() < 0.9:
            one = rng.choice(admitted)
            user = one["type"] + (":*" if "wildcard" in one else f":{self.id()}" + (f"#{one['relation']}" if "relation" in one else ""))
            condition = one.get("condition")
        if rng.random() < 0.04:
            condition = rng.choice(["c0", "c1", "nope", None])
        key = {"user": user, "relation": relation, "object": self.object(type_name)}
        if condition:
            key["condition"] = {"name": condition}
            names = self.model.conditions.get(condition, ("", ["i"]))[1]
            if rng.random() < 0.6:
                key["condition"]["context"] = self.values(names, False)
            if rng.random() < 0.03:
                key["condition"].setdefault("context", {})["undeclared"] = 1
        return key

    def contextual(self):
        rng = self.rng
        return [self.tuple() for _ in range(rng.choice([0, 0, 0, 1, 2, 3]))]

    def check(self):
        type_name = self.rng.choice(["group", "folder", "doc", "doc"])
        out = {"tuple_key": {"user": self.user(), "relation": self.relation(type_name), "object": self.object(type_name)}}
        more = self.contextual()
        if more:
            out["contextual_tuples"] = {"tuple_keys": more}
        context = self.context()
        if context is not None:
            out["context"] = context
        return out

    def list_objects(self):
        check = self.check()
        key = check.pop("tuple_key")
        type_name = key["object"].split(":")[0]
        return dict(check, type=type_name, relation=key["relation"], user=key["user"])

    def list_users(self):
        rng = self.rng
        check = self.check()
        key = check.pop("tuple_key")
        type_name, _, name = key["object"].partition(":")
        if "contextual_tuples" in check:
            check["contextual_tuples"] = check["contextual_tuples"]["tuple_keys"]
        kind = rng.randrange(8)
        filters = [{"type": "user"}] if kind < 4 else [{"type": "robot"}] if kind == 4 else [{"type": "group", "relation": "member"}] if kind < 7 else [
            {"type": rng.choice(["doc", "folder", "nope", "group"]), "relation": rng.choice(["viewer", "nope", "admin", "parent"])}]
        if rng.random() < 0.02:
            filters = rng.choice([[], filters + [{"type": "robot"}], [{"type": ""}]])
        return dict(check, object={"type": type_name, "id": name}, relation=key["relation"], user_filters=filters)


# ---- comparing ----

def outcome(status, answer):
    """What must be equal: the answer without times and tokens, or the code."""
    if status >= 400:
        return status, answer.get("code", answer)
    if "allowed" in answer:
        return status, answer["allowed"]
    if "objects" in answer:
        return status, sorted(answer["objects"])
    if "users" in answer:
        return status, sorted(json.dumps(user, sort_keys=True) for user in answer["users"])
    if "result" in answer:
        return status, {cid: one["allowed"] if "allowed" in one else {k: v for k, v in one["error"].items() if k != "message"} for cid, one in answer["result"].items()}
    if "tuples" in answer:
        return status, sorted(json.dumps(t["key"], sort_keys=True) for t in answer["tuples"])
    if "changes" in answer:
        return status, [json.dumps([c["tuple_key"], c["operation"]], sort_keys=True) for c in answer["changes"]]
    if "tree" in answer:
        return status, sort_tree(answer["tree"])
    return status, None


def sort_tree(value):
    if isinstance(value, dict):
        return {k: sorted(v, key=json.dumps) if k in ("users", "computed") and isinstance(v, list) else sort_tree(v) for k, v in value.items()}
    return [sort_tree(v) for v in value] if isinstance(value, list) else value


class Difference:
    def __init__(self, ours, theirs):
        self.ours, self.theirs, self.found, self.asked = ours, theirs, 0, {}

    def put(self, method, path, body, more):
        a, b = self.ours.ask(method, path, body), self.theirs.ask(method, path, body)
        kind = path.split("?")[0].strip("/")
        self.asked[kind] = self.asked.get(kind, 0) + 1
        if outcome(*a) != outcome(*b):
            self.found += 1
            print(f"--- {method} {path} {json.dumps(body)}\n  ours   {outcome(*a)} {a[1].get('message', '') if isinstance(a[1], dict) else ''}\n"
                  f"  theirs {outcome(*b)} {b[1].get('message', '') if isinstance(b[1], dict) else ''}\n  {more()}", flush=True)
        return a, b


def one_round(seed, difference, questions):
    rng = random.Random(seed)
    ours, theirs = difference.ours, difference.theirs
    model = Model(rng)
    q = Questions(rng, model)
    written = []
    for server in (ours, theirs):
        server.make_store()
        server.model = None

    def more():
        return f"seed {seed} model {json.dumps(model.json())} tuples {json.dumps(written)}"

    a, b = difference.put("POST", "/authorization-models", model.json(), more)
    if a[0] != 201 or b[0] != 201:
        return
    ours.model, theirs.model = a[1]["authorization_model_id"], b[1]["authorization_model_id"]
    pinned = {"authorization_model_id": ""}
    for _ in range(30):
        keys = [q.tuple() for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        body = dict(pinned, writes={"tuple_keys": keys})
        if written and rng.random() < 0.15:
            gone = rng.choice(written)
            body["deletes"] = {"tuple_keys": [{k: gone[k] for k in ("user", "relation", "object")}]}
            if rng.random() < 0.5:
                del body["writes"]
        a, b = difference.put("POST", "/write", body, more)
        if a[0] == 200 and b[0] == 200:
            gone = body.get("deletes", {}).get("tuple_keys", [])
            written = [t for t in written if not any(all(t[k] == d[k] for k in d) for d in gone)] + body.get("writes", {}).get("tuple_keys", [])
    for _ in range(questions):
        kind = rng.randrange(20)
        if kind < 9:
            difference.put("POST", "/check", dict(q.check(), **pinned), more)
        elif kind < 10:
            checks = [dict(q.check(), correlation_id=str(i)) for i in range(5)]
            difference.put("POST", "/batch-check", dict(pinned, checks=checks), more)
        elif kind < 14:
            difference.put("POST", "/list-objects", dict(q.list_objects(), **pinned), more)
        elif kind < 18:
            difference.put("POST", "/list-users", dict(q.list_users(), **pinned), more)
        elif kind < 19:
            check = q.check()
            key = check["tuple_key"]
            body = dict(pinned, tuple_key={k: key[k] for k in ("object", "relation")})
            if "contextual_tuples" in check:
                body["contextual_tuples"] = check["contextual_tuples"]
            difference.put("POST", "/expand", body, more)
        else:
            key = q.check()["tuple_key"]
            part = {k: v for k, v in key.items() if rng.random() < 0.7}
            difference.put("POST", "/read", {"tuple_key": part, "page_size": 100} if part else {"page_size": 100}, more)
    difference.put("GET", "/changes?page_size=100", None, more)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--key")
    parser.add_argument("ours")
    parser.add_argument("theirs")
    options = parser.parse_args()
    difference = Difference(Server(options.ours, options.key), Server(options.theirs, options.key))
    for i in range(options.rounds):
        one_round(options.seed + i, difference, options.questions)
    print(f"{sum(difference.asked.values())} questions, {difference.found} differences: {difference.asked}")
    return 1 if difference.found else 0


if __name__ == "__main__":
    sys.exit(main())
