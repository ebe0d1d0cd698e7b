// A store in a file of SQLite, for all processes of a machine: by `new DatabaseSync(file)` of node:sqlite, or `new Database(file)` of better-sqlite3.

/** @returns {import('sluicegate/store').CasStore} */
export function sqliteStore(db) {
  db.exec('PRAGMA busy_timeout = 5000')
  db.exec('PRAGMA journal_mode = WAL')
  // Versions come from one counter for all keys: a version never comes again.
  db.exec(`BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS limits (key TEXT PRIMARY KEY, value BLOB, version INTEGER, until_ms INTEGER) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS limits_until ON limits (until_ms);
    CREATE TABLE IF NOT EXISTS versions (last INTEGER);
    INSERT INTO versions SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM versions);
    COMMIT`)
  const select = db.prepare('SELECT value, version FROM limits WHERE key = ? AND until_ms > ?')
  const next = db.prepare('UPDATE versions SET last = last + 1 RETURNING last')
  const put = db.prepare('INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?)')
  const sweep = db.prepare('DELETE FROM limits WHERE key IN (SELECT key FROM limits WHERE until_ms <= ? ORDER BY until_ms LIMIT 2)')
  const stateOf = (key) => {
    const nowMs = Date.now()
    const row = select.get(key, nowMs)
    return { value: row?.value, version: row?.version, nowUs: nowMs * 1000 }
  }

  const swapAll = async (swaps) => {
    db.exec('BEGIN IMMEDIATE')
    try {
      const swapped = swaps.every(({ key, version }) => stateOf(key).version === version)
      if (swapped) {
        for (const { key, value, ttlMs } of swaps) put.run(key, value, next.get().last, Date.now() + Math.ceil(ttlMs))
        sweep.run(Date.now())
      }
      const states = swaps.map(({ key }) => stateOf(key))
      db.exec('COMMIT')
      return { swapped, states }
    } catch (error) {
      db.exec('ROLLBACK')
      throw error
    }
  }

  return {
    name: 'sqlite',
    read: async (key) => stateOf(key),
    readAll: async (keys) => keys.map(stateOf),
    swap: async (swap) => {
      const { swapped, states } = await swapAll([swap])
      return { swapped, state: states[0] }
    },
    swapAll,
  }
}
