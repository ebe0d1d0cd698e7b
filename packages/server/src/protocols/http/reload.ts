import { refuseOtherSites } from './cross-site.js'
import type { Route } from './handler.js'
import { Problem } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'

/** Longer lists of faults are in the log. */
const MAX_FAULT_CHARACTERS = 4_000

/** `/v1/reload`: reads the configuration again. 200, or 422 with the faults while the configuration before stays in force. */
export function reloadRoute(reload: () => void | Promise<void>, isFault: (error: unknown) => error is Error): Route {
  return {
    async POST(request, response) {
      refuseOtherSites(request)
      try {
        await reload()
      } catch (error) {
        if (!isFault(error)) throw error
        throw new Problem(422, 'CONFIG_INVALID', `the one before stays in force: ${error.message.slice(0, MAX_FAULT_CHARACTERS)}`)
      }
      reply(response, 200, JSON_TYPE, '{"reloaded":true}')
    },
  }
}
