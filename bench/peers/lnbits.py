"""LNbits on SQLite, with invoices that nobody pays, and without a call to the outside: FOLDER PORT"""

import importlib.util
import os
import sys

folder, port = sys.argv[-2:]
os.environ.update(
    LNBITS_DATA_FOLDER=folder,
    LNBITS_EXTENSIONS_PATH=folder,
    LNBITS_BACKEND_WALLET_CLASS="FakeWallet",
    LNBITS_ADMIN_UI="false",
    LNBITS_RATE_LIMIT_NO="1000000000",
    LNBITS_RATE_LIMIT_UNIT="second",
    LNBITS_PRICE_AGGREGATOR_ENABLED="false",
    LNBITS_EXCHANGE_RATE_PROVIDERS="[]",
    LNBITS_EXTENSIONS_MANIFESTS="[]",
    LNBITS_WASM_EXTENSIONS_MANIFESTS="[]",
)
# It looks for its own files below the current folder.
os.chdir(os.path.dirname(os.path.dirname(importlib.util.find_spec("lnbits").origin)))

import uvicorn

uvicorn.run("lnbits.__main__:app", host="127.0.0.1", port=int(port), access_log=False, log_level="warning")
