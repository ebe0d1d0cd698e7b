// Tokens of a user, reserved and committed over kuadrant.service.ratelimit.v1.
import { fileURLToPath } from 'node:url'
import { credentials, loadPackageDefinition, status } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const SERVICE = process.env.SLUICEGATE_GRPC ?? '127.0.0.1:8081'
const DOMAIN = 'models'

// In your own project: the folder `proto` of the package sluicegate-server.
const folder = fileURLToPath(new URL('../../packages/server/proto', import.meta.url))
const files = loadSync('kuadrant/service/ratelimit/v1/kuadrantrls.proto', { includeDirs: [folder], keepCase: true, enums: String })
const { RateLimitService } = loadPackageDefinition(files).kuadrant.service.ratelimit.v1
const client = new RateLimitService(SERVICE, credentials.createInsecure())

/** Takes `amount` tokens of the user. `undefined` in `id`: denied, and nothing was taken. */
export async function reserve(user, amount, ttlMs) {
  const ttl = { seconds: Math.floor(ttlMs / 1_000), nanos: (ttlMs % 1_000) * 1e6 }
  const { code, reservation_id } = await call('Reserve', { domain: DOMAIN, descriptors: [of(user)], amount, ttl })
  // This protocol does not say when to try again.
  return { id: code === 'OK' ? reservation_id : undefined, retryAfter: null }
}

/** Corrects the reservation to what was used: the rest comes back, more is charged. False when it has lapsed: it stays charged as reserved. */
export async function commit(user, id, actual) {
  try {
    await call('Commit', { domain: DOMAIN, descriptors: [of(user)], reservation_id: id, actual_amount: actual })
    return true
  } catch (error) {
    if (error.code === status.NOT_FOUND) return false
    throw error
  }
}

function of(user) {
  return { entries: [{ key: 'user', value: user }] }
}

function call(method, request) {
  return new Promise((resolve, reject) => {
    client[method](request, { deadline: Date.now() + 2_000 }, (error, response) => (error ? reject(error) : resolve(response)))
  })
}
