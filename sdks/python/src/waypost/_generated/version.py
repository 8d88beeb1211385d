# Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

VERSION = "0.1.0"
"""The version of the API that this package was made for, which is also that of the package."""
