export { casStore } from './cas.js'
export type { CasOutcome, CasOutcomes, CasState, CasStep, CasStore, CasSwap } from './cas-store.js'
