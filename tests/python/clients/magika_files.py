"""Says what kind of file each text is."""

import json

from magika import Magika

TEXTS = {
    "python": "import os\n\ndef main():\n    for name in os.listdir('.'):\n        print(name)\n\nif __name__ == '__main__':\n    main()\n" * 4,
    "c": "#include <stdio.h>\n\nint main(void) {\n  int x = 3;\n  printf(\"%d\\n\", x);\n  return 0;\n}\n" * 4,
    "html": "<!DOCTYPE html>\n<html><head><title>A page</title></head>\n<body><p>Some words.</p></body></html>\n" * 3,
    "json": json.dumps({"name": "somebody", "numbers": list(range(30)), "nested": {"a": None, "b": True}}, indent=2),
    "sql": "SELECT name, count(*) FROM users WHERE age > 30 GROUP BY name ORDER BY 2 DESC;\n" * 6,
    "csv": "name,age,city\n" + "".join(f"person{i},{20 + i},town{i}\n" for i in range(40)),
    "noise": bytes((i * 197 + i * i * 31) % 256 for i in range(4096)).decode("latin-1"),
}
magika = Magika()
results = [magika.identify_bytes(text.encode("latin-1")) for text in TEXTS.values()]
print(json.dumps({"labels": [r.output.label for r in results], "scores": [float(r.score) for r in results]}))
