import type { RequestHead } from './handler.js'
import { Problem } from './problem.js'

/**
 * A page on another site may not spend tokens through its visitor's browser: an image's address would be enough.
 *
 * @throws {Problem} for a request that a browser marked so.
 */
export function refuseOtherSites({ headers }: RequestHead): void {
  // Node joins several fields of that name.
  if (String(headers['sec-fetch-site']).includes('cross-site'))
    throw new Problem(403, 'CROSS_SITE', 'pages of other sites may not take tokens')
}
