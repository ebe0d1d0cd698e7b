export type { CancelSignal } from '../shared/backend.js'
export { type CasStoreOptions, casStore } from './cas.js'
export type {
  CasOutcome,
  CasOutcomes,
  CasState,
  CasStep,
  CasStepped,
  CasStepRefusal,
  CasStepState,
  CasStepVerb,
  CasStore,
  CasSwap,
  CasVersion,
} from './cas-store.js'
