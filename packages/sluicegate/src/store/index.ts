export type { StoreHome } from '../regions/store-home.js'
export type { CancelSignal } from '../shared/backend.js'
export type * from '../shared/shared-types.js'
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
export { createStoreLimiter, type StoreLimiterOptions } from './create-store-limiter.js'
export { storeHome } from './store-home.js'
