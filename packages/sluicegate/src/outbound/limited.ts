import { PolicyError } from '../errors.js'
import type { Dispatch } from './dispatch-handler.js'
import { LimitedDispatch } from './limited-dispatch.js'
import { Lines } from './lines.js'
import { controlsOf } from './outbound-controls.js'
import type { OutboundOptions } from './outbound-options.js'
import { outboundSettings } from './outbound-settings.js'
import type { OutboundControls } from './outbound-stats.js'

/** An interceptor for `dispatcher.compose`, of undici 7 or later. */
export type OutboundInterceptor = (<Function extends (options: never, handler: never) => boolean>(dispatch: Function) => Function) &
  OutboundControls

/**
 * The same as {@link limitedFetch} for undici: each request of the dispatcher waits for its turn, that of every redirect included, when it stands
 * before `interceptors.redirect()`.
 *
 * @throws {PolicyError} on options that cannot be.
 * @example
 * const agent = new Agent().compose(limited({ policy: gcra({ limit: 5, window: '1s' }) }))
 * const { statusCode, body } = await request('http://example.com/', { dispatcher: agent })
 */
export function limited(options: OutboundOptions = {}): OutboundInterceptor {
  const settings = outboundSettings(options)
  const lines = new Lines(settings)
  const interceptor =
    (dispatch: Dispatch): Dispatch =>
    (opts, handler) => {
      // Undici 7 translates for callers of older forms, 8 and 6 do not: whoever waits for other calls would wait for ever.
      if (handler.onRequestStart === undefined && 'onConnect' in handler) {
        throw new PolicyError(
          'CLIENT_INVALID',
          'dispatcher',
          handler,
          'must be called by undici 7 or later, or be of undici 7 where Node calls it',
        )
      }
      new LimitedDispatch(dispatch, opts, handler, lines, settings).start()
      return true
    }
  return Object.assign(interceptor, controlsOf(lines)) as unknown as OutboundInterceptor
}
