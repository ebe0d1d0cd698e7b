// Tokens of a user, reserved and settled over the HTTP verbs of the service.
const SERVICE = process.env.SLUICEGATE_URL ?? 'http://127.0.0.1:8080'

/** Takes `amount` tokens of the user. `undefined` in `id`: denied, and nothing was taken. */
export async function reserve(user, amount, ttlMs) {
  const response = await post('/v1/reserve', { policy: 'model-tokens', key: user, cost: amount, ttlMs })
  const answer = await response.json()
  // 422: more than the limit, which can never pass. Anything else is an outage or a mistake, and no denial.
  if (![200, 422, 429].includes(response.status)) throw new Error(`Sluicegate: ${answer.detail}`)
  return { id: answer.reservation, retryAfter: response.headers.get('retry-after') }
}

/** Corrects the reservation to what was used: the rest comes back, more is charged. False when it has lapsed: it stays charged as reserved. */
export async function commit(_user, id, actual) {
  const response = await post('/v1/settle', { reservation: id, cost: actual })
  const answer = await response.json()
  if (response.status !== 200 && response.status !== 404) throw new Error(`Sluicegate: ${answer.detail}`)
  return response.status === 200
}

function post(path, body) {
  const headers = { 'Content-Type': 'application/json' }
  return fetch(SERVICE + path, { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(2_000) })
}
