export { attachGate, createGate } from './create-gate.js'
export type {
  Gate,
  GateHandle,
  GateOptions,
  GateRecord,
  VerdictChange,
  VerdictInForce,
  VerdictReader,
} from './gate.js'
