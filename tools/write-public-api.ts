import { recordPublicApi } from './check-public-api.js'

// `npm run api`: records the public API of the packages as it is now.

recordPublicApi()
