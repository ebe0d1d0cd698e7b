import { channel } from '../diagnostics.js'

/** Published on `sluicegate:outage`: a server of a store was given up after failures in a row, or answers again. */
export interface OutageEvent {
  readonly policy: string
  /** As the client calls it, such as `10.0.0.7:6379`; undefined when there is but one, or the client does not tell. */
  readonly server: string | undefined
  /** False when it is back. */
  readonly isOut: boolean
}

export const outages = channel<OutageEvent>('sluicegate:outage')
