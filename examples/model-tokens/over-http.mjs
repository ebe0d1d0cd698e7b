// Tokens of a user, held and spent over the HTTP verbs of the service.
const SERVICE = process.env.SLUICEGATE_URL ?? 'http://127.0.0.1:8080'

/** Holds `most` tokens of the user, which spends nothing. `undefined` in `id`: denied. */
export async function open(user, most, ttlMs) {
  const response = await post('/v1/open', { policy: 'model-tokens', key: user, expect: most, ttlMs })
  const answer = await response.json()
  // 422: more than the limit, which can never pass. Anything else is an outage or a mistake, and no denial.
  if (![200, 422, 429].includes(response.status)) throw new Error(`Sluicegate: ${answer.detail}`)
  return { id: answer.hold, retryAfter: response.headers.get('retry-after') }
}

/** Spends what was used, and frees the rest. False when the hold has ended: nothing is spent. */
export async function close(id, used) {
  // Numbered, it may be repeated when its answer is lost.
  const response = await post('/v1/close', { hold: id, cost: used, call: 1 })
  const answer = await response.json()
  if (response.status !== 200 && response.status !== 404) throw new Error(`Sluicegate: ${answer.detail}`)
  return response.status === 200
}

function post(path, body) {
  const headers = { 'Content-Type': 'application/json' }
  return fetch(SERVICE + path, { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(2_000) })
}
