import type { Request, Response } from 'express'
import { type Awaitable, chained, isPromise } from '../../awaitable.js'
import type { Asked } from '../../edge/asked.js'
import { isGone } from '../../edge/node-exchange.js'
import type { UsedOptions } from './rate-limit-options.js'

/**
 * Gives back what was taken once the response has ended, if its success or failure is not to count. What ended otherwise counts, or
 * breaking off would be free.
 */
export function settleAtEnd(asked: Asked, used: UsedOptions, request: Request, response: Response): void {
  if (isGone(request, response)) {
    asked.settle(true)
    return
  }
  let isFinished = false
  response.once('finish', () => {
    isFinished = true
    const { logger } = used
    const failed = (error: unknown): void => {
      asked.settle(true)
      logger.error(error, 'error of requestWasSuccessful, the request counts')
    }
    try {
      const settled = settledBy(asked, used, request, response)
      if (isPromise(settled)) settled.catch(failed)
    } catch (error) {
      failed(error)
    }
  })
  response.once('close', () => {
    if (!isFinished) asked.settle(true)
  })
}

function settledBy(asked: Asked, used: UsedOptions, request: Request, response: Response): Awaitable<void> {
  const { requestWasSuccessful, skipFailedRequests, skipSuccessfulRequests } = used
  return chained(requestWasSuccessful(request, response), (isSuccess) =>
    asked.settle(isSuccess ? !skipSuccessfulRequests : !skipFailedRequests),
  )
}
