import type { StoreError } from '../errors.js'
import { onceInProcess } from '../once-in-process.js'

/** What a primary answers that serves no policy of the name. */
const NAME_UNKNOWN = 'NAME_UNKNOWN'

/** Whether this process was told. */
const warned = /* @__PURE__ */ onceInProcess('warned of a silent store', () => ({ isTold: false }))

/** Warns once of a store that was given up before it ever answered: as a rule the client is not connected, or to somewhere else. */
export function warnOfSilence({ message }: StoreError): void {
  // It answers, and says by itself what is wrong.
  if (warned.isTold || message.includes(NAME_UNKNOWN)) return
  warned.isTold = true
  const mend = 'until it answers the option outage decides; is the client connected, and to the right server?'
  globalThis.process?.emitWarning?.(`${message}, and nothing it was asked was ever answered: ${mend}`, {
    type: 'SluicegateWarning',
    code: 'SLUICEGATE_SILENT_STORE',
  })
}
