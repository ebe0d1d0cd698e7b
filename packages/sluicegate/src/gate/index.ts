export { attachGate, createGate } from './create-gate.js'
export type {
  Gate,
  GateHandle,
  GateOptions,
  GateRecord,
  GateStats,
  TopKey,
  VerdictChange,
  VerdictInForce,
  VerdictReader,
  VerdictState,
} from './gate.js'
