export { BookingBucket, type GiveBackRule, giveBackRule } from './booking-bucket.js'
export type { MakeLimiter } from './conformance/fixture.js'
export { type ConformanceChoice, conformance } from './conformance.js'
export { CREW_ALGORITHMS, crewFor, Mate, windowMsOf } from './crew.js'
export { EndlessDemand, FleetLoad, type FleetLoadOptions, type LoadedTake } from './fleet-load.js'
export { type FloodResult, flood } from './flood.js'
export type { Admission, Excess } from './history/excess.js'
export {
  type Crowding,
  type Flight,
  firstCrowding,
  firstExcess,
  firstOver,
  firstPositionExcess,
  firstShortfall,
  firstWindowExcess,
  shareOfBudget,
  worstExcess,
  worstSureExcess,
} from './history/excess.js'
export { holdMismatch, savedHoldSeeds } from './holds/hold-history.js'
export { HOLD_FAULTS } from './holds/holds-oracle.js'
export { policyOf, replayedInMemory, specOf } from './kit.js'
export type { Oracle, OracleBooking, OracleDecision, OracleKey } from './oracle/oracle.js'
export {
  ALGORITHM_NAMES,
  type AlgorithmName,
  type ExactEmission,
  exactEmission,
  mostCost,
  type PolicySpec,
  type RateSpec,
  type SinglePolicySpec,
} from './oracle/oracle.js'
export { RateOracle } from './oracle/rate-oracle.js'
export { type CellCall, type CellReply, RedisCell } from './oracle/redis-cell.js'
export { oracleFor, versionedOracleFor } from './oracle/versioned-oracle.js'
export { Random } from './random.js'
export type { Replayed } from './replay.js'
export { type Answer, bookingAnswer, firstMismatch, limiterAnswers, type Mismatch, mismatchIn, numbered, oracleAnswers } from './replay.js'
export { everyNth, IS_LONG_RUN, longTest, shortOrLong } from './run-length.js'
export {
  type CompareOptions,
  compareSeeds,
  largeSeeds,
  type OracleRun,
  savedSeeds,
  savedTwinSeeds,
  seedsFrom,
  seedsOf,
} from './saved-seeds.js'
export type { Sequence, Step } from './sequences/draws.js'
export { newestFirst } from './sequences/newest-first.js'
export { nextPolicy, randomPolicyOf } from './sequences/random-policy.js'
export { randomRate } from './sequences/rate-sequences.js'
export { sequenceOf } from './sequences/sequence-of.js'
export { type Fault, FaultProxy } from './servers/fault-proxy.js'
export { freePorts } from './servers/free-ports.js'
export { PgBouncerProcess } from './servers/pgbouncer-process.js'
export { PostgresProcess, type PostgresProcessOptions } from './servers/postgres-process.js'
export { RedisCluster, type RedisClusterOptions, SlotMove } from './servers/redis-cluster.js'
export { RedisProcess, type RedisProcessOptions, RedisSentinel } from './servers/redis-process.js'
export { SmallDisk } from './servers/small-disk.js'
export { until } from './servers/until.js'
export type { StormReport, WorkerJob, WorkerStart } from './worker-job.js'
export { loggedWaiting, settled, WaitLog } from './worker-job.js'
