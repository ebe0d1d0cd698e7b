export { address, clientNetwork } from './address.js'
export { fittedKey, type KeyReader, keyOf, type RequestFacts } from './key-reader.js'
export { apiKey, compose, header, method, route, subject } from './readers.js'
