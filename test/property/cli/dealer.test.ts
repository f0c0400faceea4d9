/** The dealer of `admb split`: whatever peers answer, each block is acknowledged by one peer, and a peer has few at a time. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AHEAD, Dealer, type DealerState, type Delivery } from '../../../src/cli/split/dealer.js'
import { KEY_WINDOW, LearnedKeys } from '../../../src/peer/learned-keys.js'

interface Block {
  readonly first: number
  readonly size: number
}

const BLOCKS = 60
const SIZE = 4

/** A peer that remembers which numbers it has learned, as real ones do, and loses some answers. */
class Peer {
  #keys = new LearnedKeys(undefined)
  #stored: string | undefined
  readonly learned: number[] = []

  learn({ number, block }: Delivery<Block>): void {
    const progress = this.#keys.begin(`split:s:${number}`)
    if (progress.from > 0) return
    for (let row = 0; row < block.size; row++) this.learned.push(block.first + row)
    progress.end()
    this.#stored = this.#keys.take()
  }

  restart(): void {
    this.#keys = new LearnedKeys(this.#stored)
  }
}

/** What may happen to the oldest or another block on the way, or to a peer. */
const outcome = fc.record({
  which: fc.nat(100),
  what: fc.constantFrom(
    'learned',
    'learned',
    'learned',
    'answer lost',
    'request lost',
    'refused',
    'rejected',
    'returned'
  )
})

describe('the dealer of admb split', () => {
  for (const restarts of [false, true]) {
    const what = restarts ? ', and the splitter restarts with its state' : ''
    it(`has each row learned by exactly one peer, however requests end${what}`, () => {
      fc.assert(
        fc.property(fc.integer({ min: 1, max: 4 }), fc.array(outcome, { maxLength: 300 }), (count, outcomes) => {
          const peers = Array.from({ length: count }, () => new Peer())
          let dealer = new Dealer<Block>(count)
          let sent: Delivery<Block>[] = []
          let next = 0
          const pump = () => {
            for (;;) {
              if (next < BLOCKS && dealer.wantsBlock) dealer.add({ first: SIZE * next++, size: SIZE })
              const delivery = dealer.take()
              if (delivery === undefined) break
              sent.push(delivery)
            }
            for (let peer = 0; peer < count; peer++) {
              const own = sent.filter(one => one.peer === peer).map(({ number }) => number)
              assert.ok(own.length <= AHEAD)
              assert.ok(Math.max(0, ...own) - Math.min(Number.POSITIVE_INFINITY, ...own) < KEY_WINDOW)
            }
            // The source is read no further than what is on the way.
            const held = [...dealer.waiting, ...dealer.open.map(({ block }) => block)]
            const rows = held.reduce((sum, { size }) => sum + size, 0)
            assert.ok(rows <= AHEAD * count * SIZE, `${rows} rows`)
          }
          const end = (delivery: Delivery<Block>, how: string) => {
            const { peer, block } = delivery
            if (how === 'refused') return dealer.refused(delivery)
            if (how === 'request lost') return dealer.lost(delivery)
            if (how === 'rejected' && block.size > 1) {
              const half = block.size >> 1
              // A peer that has learned the block does not reject it.
              if (peers[peer].learned.includes(block.first)) return dealer.lost(delivery)
              const rest = { first: block.first + half, size: block.size - half }
              return dealer.rejected(delivery, [{ first: block.first, size: half }, rest])
            }
            peers[peer].learn(delivery)
            if (how === 'answer lost') dealer.lost(delivery)
            else dealer.acknowledged(delivery)
          }
          for (const { which, what } of outcomes) {
            pump()
            if (what === 'returned') {
              dealer.returned(which % count)
              peers[which % count].restart()
              if (!restarts || which % 5 > 0) continue
              const saved = JSON.parse(JSON.stringify(dealer.state)) as DealerState<Block>
              // The peers learn some of what was on the way.
              for (const delivery of sent) if ((delivery.number + which) % 2 === 0) peers[delivery.peer].learn(delivery)
              sent = []
              dealer = new Dealer(count, saved)
            } else if (sent.length > 0) end(sent.splice(which % sent.length, 1)[0], what)
          }
          for (let time = 0; time < 4 * SIZE * BLOCKS; time++) {
            for (let peer = 0; peer < count; peer++) dealer.returned(peer)
            pump()
            if (sent.length > 0) end(sent.shift() as Delivery<Block>, 'learned')
          }
          const { waiting, open } = dealer
          assert.deepEqual([next, sent, waiting, open], [BLOCKS, [], [], []])
          const rows = peers.flatMap(({ learned }) => learned).sort((a, b) => a - b)
          assert.deepEqual(
            rows,
            Array.from({ length: SIZE * BLOCKS }, (_, row) => row)
          )
        }),
        { numRuns: 300 }
      )
    })
  }

  it('gives a peer that is twice as fast about twice as many blocks', () => {
    const dealer = new Dealer<number>(2)
    const sent: Delivery<number>[][] = [[], []]
    const dealt = [0, 0]
    for (let time = 1; time <= 600; time++) {
      while (dealer.wantsBlock) {
        dealer.add(time)
        const delivery = dealer.take() as Delivery<number>
        sent[delivery.peer].push(delivery)
        dealt[delivery.peer]++
      }
      for (const peer of time % 2 === 0 ? [0, 1] : [0]) dealer.acknowledged(sent[peer].shift() as Delivery<number>)
    }
    assert.ok(Math.abs(dealt[0] / dealt[1] - 2) < 0.05, `${dealt}`)
  })
})
