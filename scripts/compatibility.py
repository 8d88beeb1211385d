"""compatibility.py EARLIER LATER: fails if a client of the earlier OpenAPI document would break with the later one.

A request that was valid must stay valid: no operation, parameter or field goes, none becomes required, no value of an
enumeration goes, no type or bound narrows. What a client reads must stay: no field of a response goes or becomes
optional or null, and no type changes. New operations, optional parameters, fields, and values of responses are fine.
"""

import json
import sys


def resolve(document, schema):
    """The schema without references, and an allOf as one schema."""
    while "$ref" in schema:
        target = document
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        schema = target
    if "allOf" not in schema:
        return schema
    merged = {"properties": {}, "required": []}
    for part in [*schema["allOf"], {name: value for name, value in schema.items() if name != "allOf"}]:
        part = resolve(document, part)
        merged["properties"].update(part.get("properties", {}))
        merged["required"] = merged["required"] + part.get("required", [])
        merged.update({name: value for name, value in part.items() if name not in ("properties", "required")})
    return merged


class Comparison:
    """Compares two documents and collects what would break a client."""

    def __init__(self, earlier, later):
        self.earlier, self.later, self.problems = earlier, later, []

    def run(self):
        for path, operations in self.earlier["paths"].items():
            for method, operation in operations.items():
                name = f"{method.upper()} {path}"
                later = self.later["paths"].get(path, {}).get(method)
                if later is None:
                    self.problems.append(f"{name} is gone")
                else:
                    self.operation(name, operation, later)
        return self.problems

    def operation(self, name, earlier, later):
        if earlier.get("operationId") != later.get("operationId"):
            self.problems.append(f"{name} has another operationId")
        self.parameters(name, earlier, later)
        before, after = (self.content(document, operation.get("requestBody", {})) for document, operation in self.pair(earlier, later))
        for kind, schema in before.items():
            if kind not in after:
                self.problems.append(f"{name} no longer takes {kind}")
            else:
                self.request(f"{name} body", schema, after[kind])
        for status, response in earlier["responses"].items():
            if not status.startswith("2"):
                continue
            if status not in later["responses"]:
                self.problems.append(f"{name} no longer answers {status}")
                continue
            before, after = (self.content(document, part) for document, part in self.pair(response, later["responses"][status]))
            for kind, schema in before.items():
                if kind in after:
                    self.response(f"{name} {status}", schema, after[kind])
                elif "*/*" not in after:
                    self.problems.append(f"{name} {status} is no longer {kind}")

    def pair(self, earlier, later):
        return (self.earlier, earlier), (self.later, later)

    def content(self, document, part):
        part = resolve(document, part)
        return {kind: content.get("schema", {}) for kind, content in part.get("content", {}).items()}

    def parameters(self, name, earlier, later):
        before, after = (
            {(one["in"], one["name"]): one for one in (resolve(document, part) for part in operation.get("parameters", []))}
            for document, operation in self.pair(earlier, later)
        )
        for key, parameter in before.items():
            if key not in after:
                self.problems.append(f"{name} no longer takes the parameter {key[1]}")
            else:
                self.request(f"{name} {key[1]}", parameter["schema"], after[key]["schema"])
        for key, parameter in after.items():
            was_required = before.get(key, {}).get("required", False)
            if parameter.get("required") and not was_required:
                self.problems.append(f"{name} now requires the parameter {key[1]}")

    def request(self, place, earlier, later):
        """What was accepted must be accepted."""
        before, after = resolve(self.earlier, earlier), resolve(self.later, later)
        self.kind(place, before, after)
        gone = set(map(str, before.get("enum", []))) - set(map(str, after.get("enum", before.get("enum", []))))
        if "enum" in after and "enum" not in before:
            self.problems.append(f"{place} takes listed values only")
        if gone - {"None"}:
            self.problems.append(f"{place} no longer takes {', '.join(sorted(gone))}")
        for bound, sign in (("maxLength", 1), ("maximum", 1), ("maxItems", 1), ("minLength", -1), ("minimum", -1), ("minItems", -1)):
            if bound in after and (bound not in before or sign * after[bound] < sign * before[bound]):
                self.problems.append(f"{place}: {bound} is narrower")
        fields = after.get("properties", {})
        for field, schema in before.get("properties", {}).items():
            if not fields and "anyOf" in after:
                continue
            if field not in fields:
                self.problems.append(f"{place} no longer takes {field}")
            else:
                self.request(f"{place}.{field}", schema, fields[field])
        for field in set(after.get("required", [])) - set(before.get("required", [])):
            self.problems.append(f"{place} now requires {field}")
        if "items" in before and "items" in after:
            self.request(f"{place}[]", before["items"], after["items"])

    def response(self, place, earlier, later):
        """What was read must be there."""
        before, after = resolve(self.earlier, earlier), resolve(self.later, later)
        self.kind(place, before, after)
        if after.get("nullable") and not before.get("nullable"):
            self.problems.append(f"{place} may be null")
        fields = after.get("properties", {})
        for field, schema in before.get("properties", {}).items():
            if field not in fields:
                self.problems.append(f"{place}.{field} is gone")
            else:
                self.response(f"{place}.{field}", schema, fields[field])
        for field in set(before.get("required", [])) - set(after.get("required", [])):
            self.problems.append(f"{place}.{field} may be absent")
        if "items" in before and "items" in after:
            self.response(f"{place}[]", before["items"], after["items"])

    def kind(self, place, before, after):
        for word in ("type", "format"):
            if word in before and word in after and before[word] != after[word]:
                self.problems.append(f"{place}: the {word} {before[word]} became {after[word]}")


def main():
    earlier, later = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
    problems = Comparison(earlier, later).run()
    for problem in problems:
        print(f"breaks clients: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
