/** Large predictors in parts, from several peers. */
import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { PredictorDownload } from '../../../src/peer/predictor-download.js'
import { blocksIn, type Downloaded, PART_BYTES, PartServer } from '../../../src/peer/predictor-parts.js'
import { Store } from '../../../src/storage/index.js'
import { scratchFolder } from '../../support/scratch.js'

const DIGEST = '0123456789abcdef'.repeat(2)

/** Three blocks in four parts, none of which ends where a part ends. */
function blocksOf(seed: number): Uint8Array[] {
  return [1.3, 0.1, 2].map(share => {
    const block = new Uint8Array(share * PART_BYTES)
    for (let i = 0; i < block.length; i += 97) block[i] = i * seed
    return block
  })
}

function serverOf({ seed = 3, updates = 7, digest = DIGEST, head = 1 } = {}): PartServer {
  const id = { updates, origin: 'a', incarnation: 1, nonce: 0, digest }
  return new PartServer({
    ended: () => undefined,
    encode: async (query, held) => {
      const fits = 'digest' in query ? query.digest === digest : updates >= query.updates
      if (!fits) return undefined
      return held ? 'held' : { id, head: Uint8Array.of(head), blocks: blocksOf(seed) }
    }
  })
}

describe('the download of a predictor in parts', function () {
  this.timeout(20_000)
  const folder = scratchFolder()
  /** Requests by peer. */
  let requests: Map<string, string[]>
  let servers: Map<string, PartServer>
  /** Requests that fail. */
  let fails: (peer: string, request: string, count: number) => boolean
  /** What a request waits for. */
  let line: (peer: string, request: string) => Promise<void>
  /** Peers that a peer names. */
  let named: Map<string, string[]>
  let holders: (peer: string, signal: AbortSignal) => Promise<string[]>
  let own: number
  let slowMs: number
  /** A peer that never answers. */
  let silent: string | undefined

  beforeEach(() => {
    requests = new Map()
    servers = new Map()
    fails = () => false
    line = async () => undefined
    named = new Map()
    holders = async peer => named.get(peer) ?? []
    own = 0
    slowMs = 200
    silent = undefined
  })
  afterEach(() => {
    for (const server of servers.values()) server.stop()
  })

  function downloadOf(store?: ConstructorParameters<typeof PredictorDownload>[0]['store']): PredictorDownload {
    return new PredictorDownload({
      slowMs,
      manifestMs: 500,
      fetch: async (peer, request, signal) => {
        const all = requests.get(peer) ?? []
        requests.set(peer, [...all, request])
        if (peer === silent) await new Promise((_, reject) => signal.addEventListener('abort', reject))
        await new Promise(setImmediate)
        signal.throwIfAborted()
        await Promise.race([
          line(peer, request),
          new Promise((_, reject) => AbortSignal.any([signal]).addEventListener('abort', reject))
        ])
        if (fails(peer, request, all.length + 1)) throw new Error('the connection ended')
        const answer = await servers.get(peer)?.answer(request)
        if (answer === undefined) throw new Error('nothing found')
        return answer
      },
      holders: (peer, signal) => holders(peer, signal),
      isWanted: updates => updates > own,
      maxBytes: 1 << 24,
      store,
      signal: new AbortController().signal,
      log: () => undefined
    })
  }

  const partsOf = (peer: string) => (requests.get(peer) ?? []).filter(request => request.startsWith('part'))

  function assertWhole(downloaded: Downloaded | undefined, seed = 3): void {
    assert.ok(downloaded)
    assert.deepEqual(blocksIn(downloaded), blocksOf(seed))
  }

  it('takes parts from all peers that hold the same predictor, whatever ancestors they know', async () => {
    slowMs = 20_000
    for (const [index, peer] of ['a', 'b', 'c'].entries()) servers.set(peer, serverOf({ head: index + 1 }))
    // The line of the first one is so slow that the others take part before its first part has arrived.
    line = async (peer, request) => {
      while (peer === 'a' && request.startsWith('part') && partsOf('b').length + partsOf('c').length === 0)
        await new Promise(resolve => setTimeout(resolve, 5))
    }
    const downloaded = await downloadOf().get(1, ['a', 'b', 'c'])
    assertWhole(downloaded)
    assert.deepEqual(downloaded?.head, Uint8Array.of(1))
    const counts = ['a', 'b', 'c'].map(peer => partsOf(peer).length)
    assert.equal(counts[0] + counts[1] + counts[2], 4)
    assert.ok(Math.max(...counts) < 4, counts.join())
  })

  it('asks another peer for the parts that one does not deliver', async () => {
    servers.set('a', serverOf())
    servers.set('b', serverOf())
    line = (peer, request) =>
      peer === 'a' && request.startsWith('part') ? new Promise(() => undefined) : Promise.resolve()
    assertWhole(await downloadOf().get(1, ['a', 'b']))
    assert.equal(new Set(partsOf('b')).size, 4)
  })

  it('asks peers that the first one names', async () => {
    servers.set('a', serverOf())
    servers.set('b', serverOf())
    named.set('a', ['a', 'c', 'b'])
    fails = (peer, request) => peer === 'a' && request.startsWith('part')
    assertWhole(await downloadOf().get(1, ['a']))
    assert.equal(new Set(partsOf('b')).size, 4)
  })

  it('takes no parts of another predictor, nor parts that are damaged', async () => {
    servers.set('a', serverOf())
    servers.set('b', serverOf({ digest: DIGEST.replaceAll('0', '1') }))
    servers.set('c', serverOf({ seed: 5 }))
    assertWhole(await downloadOf().get(1, ['a', 'b', 'c']))
    assert.deepEqual([partsOf('b'), partsOf('c')], [[], []])
  })

  it('asks again for a part that does not arrive, from any peer', async () => {
    servers.set('a', serverOf())
    servers.set('b', serverOf())
    fails = (peer, request) => peer === 'a' && request.startsWith('part')
    assertWhole(await downloadOf().get(1, ['a', 'b']))
    assert.equal(new Set(partsOf('b')).size, 4)
  })

  it('resumes after an interruption without the parts that have arrived', async () => {
    servers.set('a', serverOf())
    fails = (_, request, count) => request.startsWith('part') && count > 3
    const download = downloadOf()
    assert.equal(await download.get(1, ['a']), undefined)
    const before = new Set(partsOf('a').slice(0, 2))
    fails = () => false
    requests.clear()
    servers.set('b', serverOf())
    assertWhole(await download.get(1, ['b']))
    assert.equal(partsOf('b').length, 2)
    assert.ok(partsOf('b').every(request => !before.has(request)))
  })

  it('resumes in a later run with a state directory, which then keeps nothing of it', async () => {
    servers.set('a', serverOf())
    fails = (_, request, count) => request.startsWith('part') && count > 3
    const first = await Store.open(folder)
    await first.create(Uint8Array.of(1))
    assert.equal(await downloadOf(first).get(1, ['a']), undefined)
    await first.close()
    fails = () => false
    requests.clear()
    const second = await Store.open(folder)
    try {
      assertWhole(await downloadOf(second).get(1, ['a']))
      assert.equal(partsOf('a').length, 2)
      assert.equal(await second.keptPart('manifest'), undefined)
      assert.equal(await second.keptPart('0'), undefined)
    } finally {
      await second.close()
    }
  })

  it('begins anew if nobody serves the old predictor any more', async () => {
    servers.set('a', serverOf())
    fails = (_, request, count) => request.startsWith('part') && count > 3
    const download = downloadOf()
    assert.equal(await download.get(1, ['a']), undefined)
    fails = () => false
    servers.set('a', serverOf({ digest: DIGEST.replaceAll('0', '1'), seed: 5, updates: 9 }))
    assertWhole(await download.get(1, ['a']), 5)
  })

  it('ends when the predictor is not better any more, or nobody has one', async () => {
    servers.set('a', serverOf())
    own = 7
    assert.equal(await downloadOf().get(1, ['a']), undefined)
    assert.deepEqual(partsOf('a'), [])
    assert.equal(await downloadOf().get(8, ['a']), undefined)
  })

  it('waits for no manifest when all parts are there, nor long for the first one', async () => {
    for (const peer of ['a', 'b', 'c']) servers.set(peer, serverOf())
    named.set('b', ['c'])
    line = peer => (peer === 'b' ? Promise.resolve() : new Promise(() => undefined))
    assertWhole(await downloadOf().get(1, ['a', 'b']))
    assert.deepEqual(requests.get('c'), [`manifest of ${DIGEST}`])
  })

  it('does not wait long for a manifest while the memory of the process is collected', async () => {
    setFlagsFromString('--expose-gc')
    const collect = setInterval(runInNewContext('gc') as () => void, 20)
    servers.set('b', serverOf())
    silent = 'a'
    try {
      assertWhole(await downloadOf().get(1, ['a', 'b']))
    } finally {
      clearInterval(collect)
    }
  })

  it('waits for no peer that does not name others', async () => {
    servers.set('a', serverOf())
    holders = (_, signal) => new Promise((_, reject) => signal.addEventListener('abort', reject))
    assertWhole(await downloadOf().get(1, ['a']))
  })

  it('takes the parts although they cannot be stored', async () => {
    servers.set('a', serverOf())
    const fail = () => Promise.reject(new Error('no space left on device'))
    assertWhole(await downloadOf({ keptPart: fail, keepPart: fail, dropParts: fail }).get(1, ['a']))
  })

  it('begins anew if what was stored is damaged', async () => {
    servers.set('a', serverOf())
    const store = await Store.open(await mkdtemp(join(folder, 'damaged-')))
    try {
      await store.create(Uint8Array.of(1))
      await store.keepPart('manifest', Uint8Array.of(1, 2, 3))
      assertWhole(await downloadOf(store).get(1, ['a']))
    } finally {
      await store.close()
    }
  })

  it('keeps nothing of a predictor that is not wanted any more', async () => {
    servers.set('a', serverOf())
    const store = await Store.open(await mkdtemp(join(folder, 'unwanted-')))
    try {
      await store.create(Uint8Array.of(1))
      fails = (_, request, count) => request.startsWith('part') && count > 3
      assert.equal(await downloadOf(store).get(1, ['a']), undefined)
      const later = downloadOf(store)
      await later.tidy()
      assert.ok(await store.keptPart('manifest'))
      own = 7
      await later.tidy()
      assert.deepEqual(await Promise.all(['manifest', '0', '1'].map(name => store.keptPart(name))), [
        undefined,
        undefined,
        undefined
      ])
    } finally {
      await store.close()
    }
  })

  it('ends at once when it is not wanted any more', async () => {
    servers.set('a', serverOf())
    line = async (_, request) => {
      if (request.startsWith('part')) await new Promise(() => undefined)
    }
    const download = downloadOf()
    const ended = download.get(1, ['a'])
    while (partsOf('a').length === 0) await new Promise(setImmediate)
    own = 7
    await download.tidy()
    assert.equal(await ended, undefined)
  })

  it('works where the browser offers no hashes', async () => {
    const { subtle } = crypto
    Object.defineProperty(crypto, 'subtle', { value: undefined, configurable: true })
    try {
      servers.set('a', serverOf())
      assertWhole(await downloadOf().get(1, ['a']))
    } finally {
      Object.defineProperty(crypto, 'subtle', { value: subtle, configurable: true })
    }
  })

  it('goes on although another peer sends a manifest with hashes that are no text', async () => {
    servers.set('a', serverOf())
    const manifest = await servers.get('a')?.answer('manifest since 1')
    const { hashes, ...others } = JSON.parse(new TextDecoder().decode(manifest?.subarray(4, -1)))
    const text = JSON.stringify({ ...others, hashes: hashes.map(() => ({ toString: 1, valueOf: 1 })) })
    const bytes = Uint8Array.of(0, 0, 0, 0, ...new TextEncoder().encode(text))
    new DataView(bytes.buffer).setUint32(0, text.length, true)
    servers.set('b', { answer: async () => bytes, stop: () => undefined } as unknown as PartServer)
    assertWhole(await downloadOf().get(1, ['a', 'b']))
  })

  it('refuses a manifest of more bytes than a predictor has, or of other numbers', async () => {
    const manifests = ['{}', '[]', 'x', `{"digest":"${DIGEST}","updates":9,"sizes":[${2 ** 25}],"hashes":[]}`]
    for (const text of manifests) {
      const bytes = new Uint8Array(4 + text.length)
      bytes[0] = text.length
      bytes.set(new TextEncoder().encode(text), 4)
      servers.set('a', { answer: async () => bytes, stop: () => undefined } as unknown as PartServer)
      assert.equal(await downloadOf().get(1, ['a']), undefined, text)
      assert.equal(partsOf('a').length, 0)
    }
  })
})
