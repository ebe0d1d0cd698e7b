import type { Response } from 'express'
import { chained } from '../../awaitable.js'
import type { Asked } from '../../edge/asked.js'
import { denialOf } from '../../edge/denial.js'
import { bodyMaker } from '../../edge/denial-body.js'
import { statusesOf } from '../../edge/denial-status.js'
import { sendAnswer } from '../../edge/node-exchange.js'
import { retryAfterS } from '../../headers/retry-after.js'

const { outage: OUTAGE_STATUS } = statusesOf()
const bodyOf = bodyMaker()

/** Answers a request that the limiter could not decide, and that does not pass without it: no fault of the client, hence not 429. */
export function answerOutage(asked: Asked, response: Response): void {
  const { decision } = asked
  void chained(bodyOf(denialOf([asked], false), OUTAGE_STATUS, undefined), ({ type, text }) => {
    const headers = [
      ['Retry-After', retryAfterS(decision.retryAfterMs)],
      ['Content-Type', type],
      ['Cache-Control', 'no-store'],
    ] as const
    sendAnswer(response, { passes: false, status: OUTAGE_STATUS, headers, body: text, decision })
  })
}
