export { attachGate, createGate } from './create-gate.js'
export type {
  Gate,
  GateHandle,
  GateOptions,
  GateRecord,
  GateStats,
  GivenVerdict,
  Threshold,
  TopKey,
  Verdict,
  VerdictChange,
  VerdictInForce,
  VerdictReader,
  VerdictState,
} from './gate.js'
