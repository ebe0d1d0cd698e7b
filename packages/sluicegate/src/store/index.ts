export { casStore } from './cas.js'
export type { CasState, CasStep, CasStore, CasSwap } from './cas-store.js'
