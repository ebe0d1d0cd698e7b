import { IS_LONG_RUN } from '../run-length.js'
import { answerCases } from './answer-cases.js'
import { delayCases } from './delay-cases.js'
import { endingCases } from './ending-cases.js'
import type { Harness } from './harness.js'
import type { StartApp } from './listening.js'
import { optionCases } from './option-cases.js'
import { outageCases } from './outage-cases.js'
import { policyCases } from './policy-cases.js'
import { Site } from './site.js'

/**
 * Everything that an adapter has to do in its framework, over real sockets.
 *
 * @param isVariant whether another suite runs the same adapter, in another version or setting of its framework: a short run leaves out what
 * depends on the adapter alone.
 */
export function adapterSuite<Request>(harness: Harness<Request>, isVariant = false): void {
  const start: StartApp<Request> = async (t, limits) => {
    const site = new Site()
    const app = await harness.start(site, limits)
    t.after(() => app.close())
    return { ...app, site }
  }
  answerCases(harness, start)
  endingCases(harness, start)
  if (isVariant && !IS_LONG_RUN) return
  optionCases(harness, start)
  policyCases(harness, start)
  outageCases(harness, start)
  delayCases(harness, start)
}
