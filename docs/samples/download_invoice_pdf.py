from pathlib import Path

from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
file, error = client.invoices.download_pdf("{{invoice_id}}")
if error:
    raise SystemExit(error)
written = Path("invoice.pdf").write_bytes(file["raw"].encode("latin-1"))
print(written, "bytes")
