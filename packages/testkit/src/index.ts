export { type Answer, bookingAnswer, numbered } from './answer.js'
export { BookingBucket, type GiveBackRule, giveBackRule } from './booking-bucket.js'
export { type CompareOptions, compareSeeds, type OracleRun, seedsFrom } from './compare-seeds.js'
export type { MakeLimiter } from './conformance/fixture.js'
export { type ConformanceChoice, conformance } from './conformance.js'
export { crewFor, Mate } from './crew.js'
export { CREW_ALGORITHMS, windowMsOf } from './crew-algorithms.js'
export { EndlessDemand } from './endless-demand.js'
export { FleetLoad, type FleetLoadOptions, type LoadedTake } from './fleet-load.js'
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
export { policyOf, replayedInMemory, specOf } from './kit.js'
export { type ExactEmission, exactEmission, type RateSpec } from './oracle/emission.js'
export type { Oracle, OracleBooking, OracleDecision, OracleKey } from './oracle/oracle.js'
export { oracleFor } from './oracle/oracle-for.js'
export { ALGORITHM_NAMES, type AlgorithmName, mostCost, type PolicySpec, type SinglePolicySpec } from './oracle/policy-spec.js'
export { RateOracle } from './oracle/rate-oracle.js'
export { type CellCall, type CellReply, RedisCell } from './oracle/redis-cell.js'
export { versionedOracleFor } from './oracle/versioned-oracle.js'
export { Random } from './random.js'
export type { Replayed } from './replay.js'
export { firstMismatch, limiterAnswers, type Mismatch, mismatchIn, oracleAnswers } from './replay.js'
export { everyNth, IS_LONG_RUN, longTest, shortOrLong } from './run-length.js'
export { savedSeeds, savedTwinSeeds, seedsOf } from './saved-seeds.js'
export { newestFirst } from './sequences/newest-first.js'
export { nextPolicy, randomPolicyOf } from './sequences/random-policy.js'
export { randomRate } from './sequences/rate-sequences.js'
export type { Sequence, Step } from './sequences/sequence.js'
export { sequenceOf } from './sequences/sequence-of.js'
export { type Fault, FaultProxy } from './servers/fault-proxy.js'
export { freePorts } from './servers/free-ports.js'
export { PgBouncerProcess } from './servers/pgbouncer-process.js'
export { PostgresProcess, type PostgresProcessOptions } from './servers/postgres-process.js'
export { RedisCluster, type RedisClusterOptions } from './servers/redis-cluster.js'
export { RedisProcess, type RedisProcessOptions } from './servers/redis-process.js'
export { RedisSentinel } from './servers/redis-sentinel.js'
export { SlotMove } from './servers/slot-move.js'
export { SmallDisk } from './servers/small-disk.js'
export { until } from './servers/until.js'
export { loggedWaiting, settled, WaitLog } from './wait-log.js'
export type { StormReport, WorkerJob, WorkerStart } from './worker-job.js'
