// A store in DynamoDB, in a table whose partition key is `key`, a string, with time to live by `until`. It gives no time finer than a second,
// so the clock is this machine's: all processes need synchronized clocks. The client is to try nothing again: `new DynamoDB({ maxAttempts: 1 })`
// of @aws-sdk/client-dynamodb.
import { createHash, randomUUID } from 'node:crypto'

const NAMES = { '#until': 'until', '#version': 'version' }

/** @returns {import('sluicegate/store').CasStore} */
export function dynamodbStore(client, table) {
  // A partition key has at most 2,048 bytes.
  const nameOf = (key) => ({ S: createHash('sha256').update(key).digest('base64url') })

  const read = async (key) => {
    const { Item: item } = await client.getItem({ TableName: table, Key: { key: nameOf(key) }, ConsistentRead: true })
    const nowMs = Date.now()
    // DynamoDB removes what is over hours later.
    const isThere = item !== undefined && Number(item.until.N) * 1000 > nowMs
    return { value: isThere ? item.value.B : undefined, version: isThere ? item.version.S : undefined, nowUs: nowMs * 1000 }
  }

  return {
    name: 'dynamodb',
    read,
    swap: async ({ key, version, value, ttlMs }) => {
      const nowMs = Date.now()
      const next = randomUUID()
      const isNew = version === undefined
      try {
        await client.putItem({
          TableName: table,
          Item: {
            key: nameOf(key),
            value: { B: value.slice() },
            version: { S: next },
            until: { N: String(Math.ceil((nowMs + ttlMs) / 1000) + 1) },
          },
          ConditionExpression: isNew ? 'attribute_not_exists(#version) OR #until <= :now' : '#version = :version AND #until > :now',
          ExpressionAttributeNames: NAMES,
          ExpressionAttributeValues: { ':now': { N: String(nowMs / 1000) }, ...(!isNew && { ':version': { S: version } }) },
        })
      } catch (error) {
        if (error.name !== 'ConditionalCheckFailedException') throw error
        return { swapped: false, state: await read(key) }
      }
      return { swapped: true, state: { value, version: next, nowUs: Date.now() * 1000 } }
    },
  }
}
