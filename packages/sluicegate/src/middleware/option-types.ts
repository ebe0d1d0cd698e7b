// The types of the options of all adapters, and of what their functions are called with and return. Each adapter exports them.

export type { BanEvent, BanOptions } from '../ban-options.js'
export type { HeaderPair } from '../headers/header.js'
export type { HeaderOptions, HeaderVersion } from '../headers/header-writer.js'
export type { QuotaUnit } from '../headers/quota.js'
export type { Hold, OpenOptions } from '../holds/hold.js'
export type { AnyHold, Metered } from '../holds/metered.js'
export type { KeyReader, RequestFacts } from '../keys/key-reader.js'
export type { SlowDownOptions } from '../slow-down.js'
export type { Denial, DenialKind, ProblemKind } from './denial.js'
export type { AnswerChange, Body, BodyOption } from './denial-response.js'
export type { GivenKey, KeySource, MissingKeyOption, SingleKeySource } from './key-source.js'
export type { LimitArgument } from './limit-argument.js'
export type {
  Counts,
  LimiterMaker,
  LimitOptions,
  MiddlewareLimiter as EdgeLimiter,
  OutageChoice,
  OutageDecision,
  OutageOption,
  PolicyChoice,
} from './middleware-options.js'
