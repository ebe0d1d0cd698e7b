// HTTP as data: headers and bodies that describe decisions, and a reader for those of other servers. Nothing here touches a request or a
// response.

export type { HeaderPair } from './headers/header.js'
export { type HeaderOptions, HeaderWriter, rateLimitHeaders } from './headers/header-writer.js'
export { type RateLimitReading, readRateLimit } from './headers/read-rate-limit.js'
export { problemJson } from './middleware/denial-response.js'
