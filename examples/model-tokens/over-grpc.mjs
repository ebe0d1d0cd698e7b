// Tokens of a user, held and spent over sluicegate.v1.Limiter.
import { fileURLToPath } from 'node:url'
import { credentials, loadPackageDefinition, status } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const SERVICE = process.env.SLUICEGATE_GRPC ?? '127.0.0.1:8081'

// In your own project: the folder `proto` of the package sluicegate-server.
const folder = fileURLToPath(new URL('../../packages/server/proto', import.meta.url))
const files = loadSync('sluicegate/v1/limiter.proto', { includeDirs: [folder], keepCase: true, longs: Number })
const { Limiter } = loadPackageDefinition(files).sluicegate.v1
const client = new Limiter(SERVICE, credentials.createInsecure())

/** Holds `most` tokens of the user, which spends nothing. `undefined` in `id`: denied. */
export async function open(user, most, ttlMs) {
  const ttl = { seconds: Math.floor(ttlMs / 1_000), nanos: (ttlMs % 1_000) * 1e6 }
  const { decision, hold_id } = await call('Open', { policy: 'model-tokens', keys: [user], expect: { tokens: most }, ttl })
  const after = decision.retry_after
  return { id: decision.allowed ? hold_id : undefined, retryAfter: after ? after.seconds + Math.ceil(after.nanos / 1e9) : null }
}

/** Spends what was used, and frees the rest. False when the hold has ended: nothing is spent. */
export async function close(id, used) {
  try {
    // Numbered, it may be repeated when its answer is lost.
    await call('Close', { hold_id: id, cost: { tokens: used }, call: 1 })
    return true
  } catch (error) {
    if (error.code === status.NOT_FOUND) return false
    throw error
  }
}

function call(method, request) {
  return new Promise((resolve, reject) => {
    client[method](request, { deadline: Date.now() + 2_000 }, (error, response) => (error ? reject(error) : resolve(response)))
  })
}
