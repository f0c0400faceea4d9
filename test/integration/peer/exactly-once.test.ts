/** Peers that are killed at random instants use every input exactly once. The parameters count the uses. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../../sim/engine/random.js'
import { sizeOf } from '../../../src/admb/core/journal.js'
import type { AuditReport } from '../../../src/peer/audit.js'
import type { PeerStatus } from '../../../src/peer/index.js'
import { admbJson } from '../../support/admb-command.js'
import { CountingPeers } from '../../support/counting-peers.js'
import { until } from '../../support/peer-processes.js'
import { share } from '../../support/runs.js'

const PEERS = 3
/** For long runs by hand: ADMB_KILLS=1000. */
const KILLS = Number(process.env.ADMB_KILLS ?? share(24))
/** Rows a second of each peer: fewer in a long run, as the model has a parameter for each row. */
const RATE = KILLS > 100 ? 60 : 400
/** Mean time between two kills, with the restart. */
const KILL_SECONDS = 1.2

describe('peers that are killed', function () {
  this.timeout(300_000 + 10_000 * KILLS)
  let counting: CountingPeers
  afterEach(() => counting.remove())

  it('use every row of their files, and every acknowledged input, exactly once', async () => {
    const random = new Random(Number(process.env.ADMB_SEED ?? 1))
    const rows = Math.ceil(RATE * KILL_SECONDS * KILLS * 0.7)
    // The features after those of the files belong to requests, and the last one fills the batches at the end.
    const requests = 40 * KILLS
    const dimension = PEERS * rows + requests + 1
    // The parameters are exact counts.
    counting = await CountingPeers.create(dimension, { rate: RATE, batch: 24, sums: 'exact', period: 40, carry: 1500 })
    const data = (peer: number) => join(counting.folder, `${peer}.svm`)
    for (let peer = 0; peer < PEERS; peer++) {
      const lines = Array.from({ length: rows }, (_, row) => `1 ${peer * rows + row + 1}:1\n`)
      await writeFile(data(peer), lines.join(''))
    }
    for (let peer = 0; peer < PEERS; peer++) await counting.start(peer, { data: data(peer) })
    const acknowledged: number[] = []
    let request = PEERS * rows
    let isOver = false
    const requesting = (async () => {
      while (!isOver && request < dimension - 1) {
        const feature = ++request
        if (await counting.learn(Math.floor(random.next() * PEERS), feature)) acknowledged.push(feature)
        await sleep(20)
      }
    })()
    for (let kill = 1; kill <= KILLS; kill++) {
      await sleep(random.next() * 1000 * KILL_SECONDS)
      const peer = Math.floor(random.next() * PEERS)
      await counting.kill(peer)
      // Sometimes the others go on for a while without it.
      if (random.next() < 0.3) await sleep(1500 * random.next())
      await counting.start(peer, { data: data(peer) })
      await counting.counts(peer)
    }
    isOver = true
    await requesting
    const expected = [...Array.from({ length: PEERS * rows }, (_, row) => row + 1), ...acknowledged]
    let missing: readonly number[] = expected
    await until(
      'all inputs are used',
      async () => {
        missing = await counting.missing(expected)
        return missing.length === 0
      },
      60_000 + (1000 * rows) / RATE
    ).catch(async error => {
      const statuses = await Promise.all(
        counting.urls.map(async url => {
          const { inputs, ended, discarded, updates, neighbours } = (await (
            await fetch(`${url}/status`)
          ).json()) as PeerStatus
          return JSON.stringify({ inputs, ended, discarded, updates, neighbours: neighbours.length })
        })
      )
      throw new Error(
        `${statuses.join(' ')} ${error.message}: ${missing.length} inputs are missing, such as ${missing.slice(0, 10)}`
      )
    })
    // From outside: the journals and the lineage say the same as the parameters.
    for (let peer = 0; peer < PEERS; peer++) await counting.kill(peer)
    const dirs = counting.dirs(PEERS).map(dir => ['--dir', dir])
    const { lineage, peers } = (await admbJson(['audit', '--complete', ...dirs.flat()])) as AuditReport
    assert.ok(lineage.whole && peers.every(({ journalWhole }) => journalWhole))
    // The last updates may not have been stored: a start would decide about their inputs, or learn them again.
    const kept = peers.flatMap(({ runs }) =>
      runs.flatMap(one => (one.data === null ? [] : [...one.used, ...one.doubt, ...one.deferred]))
    )
    assert.equal(sizeOf(kept), PEERS * rows, 'all rows')
    assert.ok(peers.every(({ runs }) => runs.every(({ twice }) => twice.length === 0)))
  })
})
