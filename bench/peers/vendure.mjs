// A Vendure shop with one product, in an empty PostgreSQL database: DATABASE_URL PORT
import vendure from "@vendure/core";

const { DefaultLogger, LanguageCode, LogLevel } = vendure;
const { Populator, ProductService, ProductVariantService, RequestContextService } = vendure;
const [url, port] = process.argv.slice(-2);

const config = (port, synchronize) => ({
  apiOptions: { hostname: "127.0.0.1", port, shopApiPath: "shop-api" },
  authOptions: { tokenMethod: "bearer", superadminCredentials: { identifier: "admin", password: "admin" } },
  dbConnectionOptions: { type: "postgres", url, synchronize },
  logger: new DefaultLogger({ level: LogLevel.Error }),
  paymentOptions: { paymentMethodHandlers: [] },
});

// On a port that nobody knows, so that the shop can be reached only once it is complete.
const empty = await vendure.bootstrap(config(0, true));
const languageCode = LanguageCode.en;
await empty.get(Populator).populateInitialData({
  defaultLanguage: languageCode,
  defaultZone: "Africa",
  countries: [{ code: "GM", name: "Gambia", zone: "Africa" }],
  taxRates: [{ name: "standard", percentage: 15 }],
  shippingMethods: [],
  paymentMethods: [],
  collections: [],
});
const admin = await empty.get(RequestContextService).create({ apiType: "admin" });
const name = "Two bags of rice";
const product = await empty
  .get(ProductService)
  .create(admin, { enabled: true, translations: [{ languageCode, name, slug: "rice", description: name }] });
await empty.get(ProductVariantService).create(admin, [
  { productId: product.id, sku: "RICE", price: 145000, trackInventory: "FALSE", translations: [{ languageCode, name }] },
]);
await empty.close();

await vendure.bootstrap(config(Number(port), false));
