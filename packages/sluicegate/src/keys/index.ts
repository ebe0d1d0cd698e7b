export { type AddressOptions, type AddressReader, address, clientNetwork, type NetworkOptions } from './address.js'
export type { FallbackReason } from './client-address.js'
export { fittedKey, type KeyReader, keyOf, type ReaderOptions, type RequestFacts } from './key-reader.js'
export { type ApiKeyOptions, apiKey, compose, header, method, route, type Subject, subject } from './readers.js'
