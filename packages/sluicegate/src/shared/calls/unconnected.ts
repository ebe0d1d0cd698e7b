/** Errors of the system, and of clients of stores by their codes, names or words: no connection is open. */
const UNCONNECTED = new RegExp(
  [
    'E(?:CONNREFUSED|CONNRESET|HOSTUNREACH|NETUNREACH|NOTFOUND|PIPE|TIMEDOUT)|EAI_AGAIN',
    // node-redis.
    'client is (?:offline|closed)|Disconnects client|Socket closed unexpectedly|Connection timeout|root nodes are unavailable',
    // ioredis.
    "Connection is closed|isn't (?:writeable|ready) and enableOfflineQueue|Cluster is disconnect|None of startup nodes|Failed to refresh slots cache",
    'max retries per request',
    // valkey-glide.
    '(?:Closing|Connection)Error',
    // pg, postgres.
    'Connection terminated|not queryable|calling end on the pool|trying to connect|CONNECT(?:_TIMEOUT|ION_(?:CLOSED|DESTROYED|ENDED))',
  ].join('|'),
)
const DEEPEST = 4

/** Whether a call failed since its client has no connection to the store. */
export function isUnconnected(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth === DEEPEST) return false
  const { name, message, cause } = error
  return UNCONNECTED.test(`${(error as { readonly code?: unknown }).code} ${name} ${message}`) || isUnconnected(cause, depth + 1)
}
