/** Repeated `kill -9`: the peer resumes from its stored state, and never publishes two predictors under one id. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LEARNERS, type LearnerKind, PeerProcesses, until } from '../../support/peer-processes.js'
import { share } from '../../support/runs.js'

const KILLS: Record<LearnerKind, number> = { 'a convex model': share(16), 'a network': share(12) }
/** Networks start and step more slowly. */
const STRETCH: Record<LearnerKind, number> = { 'a convex model': 1, 'a network': 4 }

describe('a peer that is killed', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  for (const learner of LEARNERS)
    it(`with ${learner} resumes from its last checkpoint under a new incarnation, and rejoins, each time`, async () => {
      const kills = KILLS[learner]
      const dir = join(await processes.scratch(), 'state')
      const common = ['--data', 'digits', '--passes', '1000', '--rate', '400', '--batch', '32', '--period', '50']
      common.push(...(await processes.modelOptions(learner)))
      const steady = await processes.start(...common, '--shard', '1/2', '--log-level', 'warn').ready()
      const [address] = steady.latest.addresses
      const start = () => processes.start(...common, '--shard', '2/2', '--dir', dir, '--peer', address)
      const incarnations: number[] = []
      let polling = true
      const poll = (async () => {
        while (polling) {
          processes.recordDigest(await steady.fetchStatus())
          await sleep(60)
        }
      })()
      let stored = 0
      let storedInputs = 0
      for (let run = 1; run <= kills + 1; run++) {
        const peer = await start().ready()
        const { incarnation, updates, inputs } = peer.latest
        incarnations.push(incarnation)
        assert.ok(updates >= stored, `run ${run} starts with ${updates} updates, ${stored} were stored`)
        assert.ok(inputs >= storedInputs, `run ${run} starts with ${inputs} inputs, ${storedInputs} were stored`)
        const id = peer.latest.id
        await until('the restarted peer is linked', async () => {
          const now = await steady.fetchStatus()
          return now.neighbours.includes(id)
        })
        const seen: { at: number; updates: number; inputs: number }[] = []
        const observe = async () => {
          const status = await peer.fetchStatus()
          processes.recordDigest(status)
          seen.push({ at: performance.now(), updates: status.updates, inputs: status.inputs })
          return status
        }
        // They are seen long enough before the end that they are stored, however slow the machine is.
        if (run % 4 === 3) {
          await until('an update and an input', async () => {
            const { updates, inputs } = await observe()
            return updates > 0 && inputs > 0
          })
        }
        // At different times within the period of checkpoints, and sometimes after several of them.
        const end = performance.now() + STRETCH[learner] * (100 + 47 * (run % 7)) + (run % 4 === 3 ? 1500 : 0)
        while (performance.now() < end) {
          await observe()
          await sleep(40)
        }
        await peer.stop('SIGKILL')
        const killed = performance.now()
        const old = seen.filter(({ at }) => at < killed - 1000)
        stored = Math.max(stored, ...old.map(each => each.updates))
        storedInputs = Math.max(storedInputs, ...old.map(each => each.inputs))
      }
      polling = false
      await poll
      assert.deepEqual(
        incarnations,
        Array.from({ length: kills + 1 }, (_, run) => run + 1)
      )
      assert.deepEqual(processes.equivocations, [])
      assert.ok(processes.digests.size > 5 * kills, `only ${processes.digests.size} predictors were seen`)
      assert.ok(stored > 0 && storedInputs > 0, `${stored} updates and ${storedInputs} inputs were stored`)
    })
})
