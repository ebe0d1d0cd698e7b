// HTTP as data: headers and bodies that describe decisions, and a reader for those of other servers. Nothing here touches a request or a
// response.

export type { HeaderPair, HeaderSource } from './headers/header.js'
export type { ResetMeaning } from './headers/header-formats.js'
export { type Answered, type HeaderOptions, type HeaderVersion, HeaderWriter, rateLimitHeaders } from './headers/header-writer.js'
export type { QuotaUnit } from './headers/quota.js'
export { type PolicyReading, type RateLimitReading, readRateLimit } from './headers/read-rate-limit.js'
export { PROBLEM_MEDIA_TYPE, type ProblemMembers, problemJson } from './middleware/denial-response.js'
