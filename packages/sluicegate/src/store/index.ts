export type { CancelSignal } from '../shared/backend.js'
export type { CasOutcome, CasOutcomes, CasState, CasStore, CasSwap, CasVersion } from './cas-store.js'
