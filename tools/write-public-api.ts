import { recordPublicApi } from './check-public-api.js'
import { recordOptions } from './options-page.js'

// `npm run api`: records the public API of the packages as it is now, and the page of all options.

recordPublicApi()
recordOptions()
