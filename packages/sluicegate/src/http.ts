// HTTP as data: headers and bodies that describe decisions, and a reader for those of other servers. Nothing here touches a request or a
// response.

export type { ResetMeaning } from './headers/header-formats.js'
export type { HeaderOptions, HeaderVersion } from './headers/header-options.js'
export type { HeaderPair } from './headers/header-pair.js'
export type { HeaderSource } from './headers/header-source.js'
export { type Answered, HeaderWriter, rateLimitHeaders } from './headers/header-writer.js'
export type { QuotaUnit } from './headers/quota.js'
export type { PolicyReading, RateLimitReading } from './headers/rate-limit-reading.js'
export { readRateLimit } from './headers/read-rate-limit.js'
export { PROBLEM_MEDIA_TYPE, type ProblemMembers, problemJson } from './middleware/problem.js'
