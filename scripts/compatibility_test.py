"""Tests of compatibility.py: what breaks a client is found, and what does not is not."""

import copy
import unittest

from compatibility import Comparison

DOCUMENT = {
    "paths": {
        "/v1/things": {
            "post": {
                "operationId": "create_thing",
                "parameters": [{"in": "query", "name": "dry", "schema": {"type": "boolean"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Create"}}}},
                "responses": {
                    "201": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                    "400": {},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Create": {
                "required": ["name"],
                "properties": {"name": {"type": "string", "maxLength": 9}, "kind": {"enum": ["A", "B"]}},
            },
            "Base": {"required": ["id"], "properties": {"id": {"type": "string"}}},
            "Thing": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"kind": {"enum": ["A", "B"]}}}]},
        }
    },
}


def problems(change):
    later = copy.deepcopy(DOCUMENT)
    change(later["paths"]["/v1/things"], later["components"]["schemas"])
    return Comparison(DOCUMENT, later).run()


class Compatibility(unittest.TestCase):
    def test_what_breaks_a_client_is_found(self):
        changes = {
            "is gone": lambda path, schemas: path.pop("post"),
            "no longer takes the parameter dry": lambda path, schemas: path["post"].pop("parameters"),
            "now requires the parameter dry": lambda path, schemas: path["post"]["parameters"][0].update(required=True),
            "no longer takes kind": lambda path, schemas: schemas["Create"]["properties"].pop("kind"),
            "now requires kind": lambda path, schemas: schemas["Create"]["required"].append("kind"),
            "no longer takes B": lambda path, schemas: schemas["Create"]["properties"]["kind"]["enum"].remove("B"),
            "maxLength is narrower": lambda path, schemas: schemas["Create"]["properties"]["name"].update(maxLength=8),
            "the type string became integer": lambda path, schemas: schemas["Base"]["properties"]["id"].update(type="integer"),
            "id is gone": lambda path, schemas: schemas["Base"]["properties"].pop("id"),
            "id may be absent": lambda path, schemas: schemas["Base"]["required"].remove("id"),
            "may be null": lambda path, schemas: schemas["Base"]["properties"]["id"].update(nullable=True),
            "no longer answers 201": lambda path, schemas: path["post"]["responses"].pop("201"),
        }
        for problem, change in changes.items():
            found = problems(change)
            self.assertTrue(any(problem in one for one in found), f"{problem}: {found}")

    def test_additions_are_fine(self):
        def change(path, schemas):
            path["get"] = {"operationId": "list_things", "responses": {"200": {}}}
            path["post"]["parameters"].append({"in": "query", "name": "more", "schema": {"type": "string"}})
            schemas["Create"]["properties"].update(further={"type": "string"}, name={"type": "string"})
            schemas["Base"]["properties"]["further"] = {"type": "string"}
            schemas["Thing"]["allOf"][1]["properties"]["kind"]["enum"].append("C")

        self.assertEqual(problems(change), [])


if __name__ == "__main__":
    unittest.main()
