/** Random draws before a run: fault schedules and arrivals; and the simulated disk. */
import assert from 'node:assert/strict'
import { Random } from '../../../sim/engine/random.js'
import { SimulatedDisk } from '../../../sim/faults/disk.js'
import { drawFaults } from '../../../sim/faults/draw.js'
import type { Fault } from '../../../sim/faults/schedule.js'
import { parseScenario } from '../../../sim/index.js'
import { drawArrivals } from '../../../sim/streams/create.js'
import { createTopology } from '../../../sim/topology.js'
import type { Saved } from '../../../src/admb/index.js'

const UNTIL = 20_000

function draw(faults: object, values: object = {}, seed = 1): Fault[] {
  const scenario = parseScenario({ nodes: 20, topology: 'random', faults, ...values }, 'test')
  const topology = createTopology(scenario, new Random(seed, 'topology'))
  return drawFaults(scenario, topology, UNTIL, new Random(seed, 'faults'))
}

/** Total time between faults of two kinds, as a share of nine tenths of the run. */
function shareBetween(faults: readonly Fault[], begin: string, end: string, of = 1): number {
  const sum = (kind: string) => faults.filter(fault => fault.kind === kind).reduce((total, { time }) => total + time, 0)
  return (sum(end) - sum(begin)) / (0.9 * UNTIL * of)
}

/** Whether the nodes are connected by edges of the tree. */
function areConnected(nodes: readonly number[], neighbours: readonly (readonly number[])[]): boolean {
  const reached = new Set(nodes.slice(0, 1))
  for (const node of reached) for (const next of neighbours[node]) if (nodes.includes(next)) reached.add(next)
  return reached.size === nodes.length
}

describe('drawn faults', () => {
  it('take the requested shares of time, and end within nine tenths of the run', () => {
    const near = (share: number, wanted: number) => assert.ok(Math.abs(share - wanted) < 0.25 * wanted, `${share}`)
    near(shareBetween(draw({ crashShare: 0.2 }), 'crash', 'restart', 20), 0.2)
    near(shareBetween(draw({ pauseShare: 0.1 }), 'pause', 'resume', 20), 0.1)
    near(shareBetween(draw({ awayShare: 0.3 }), 'leave', 'join', 20), 0.3)
    near(shareBetween(draw({ partitionShare: 0.3, partitionMin: 10 }), 'partition', 'heal'), 0.3)
    near(shareBetween(draw({ clogShare: 0.1 }), 'clog', 'unclog', 38), 0.1)
    const all = draw({ crashShare: 0.2, pauseShare: 0.1, awayShare: 0.3, partitionShare: 0.3, clogShare: 0.1 })
    assert.ok(all.every(({ time }, i) => time <= 0.9 * UNTIL && (i === 0 || time >= all[i - 1].time)))
  })

  it('of one kind do not depend on those of other kinds', () => {
    const crashes = (faults: object) => draw({ crashShare: 0.2, ...faults }).filter(({ kind }) => kind === 'crash')
    assert.deepEqual(crashes({ pauseShare: 0.5, partitionShare: 0.2, clogShare: 0.1 }), crashes({}))
    assert.deepEqual(
      crashes({ diskLossShare: 0.5 }).map(({ time }) => time),
      crashes({ silentShare: 0.5 }).map(({ time }) => time)
    )
  })

  it('lose disks and are silent in the requested shares', () => {
    const faults = draw({ crashShare: 0.3, diskLossShare: 0.25, silentShare: 0.5 })
    const crashes = faults.filter(fault => fault.kind === 'crash')
    const restarts = faults.filter(fault => fault.kind === 'restart')
    assert.ok(Math.abs(crashes.filter(({ silent }) => silent).length / crashes.length - 0.5) < 0.1)
    assert.ok(Math.abs(restarts.filter(({ disk }) => disk === 'lost').length / restarts.length - 0.25) < 0.1)
  })

  it('start after the warm-up', () => {
    assert.ok(draw({ crashShare: 0.5 }, { warmup: 700 })[0].time > 700)
  })

  it('partition the network by the modes', () => {
    const cuts = (partitionMode: string, more: object = {}) =>
      draw({ partitionShare: 0.5, partitionTime: 20, partitionMode, ...more }).filter(
        ({ kind }) => kind === 'partition'
      )
    const { neighbours } = createTopology(
      parseScenario({ nodes: 20, topology: 'random' }, 'test'),
      new Random(1, 'topology')
    )
    const sizes = (mode: string) =>
      cuts(mode).map(fault => 'sides' in fault && fault.sides.reduce((sum, side) => sum + side, 0))
    assert.ok(sizes('isolate').every(size => size === 1 || size === 19))
    assert.equal(new Set(sizes('uniform')).size, 19)
    for (const fault of cuts('split')) {
      if (!('sides' in fault)) continue
      for (const side of [0, 1]) {
        const nodes = [...fault.sides.keys()].filter(node => fault.sides[node] === side)
        assert.ok(nodes.length > 0 && areConnected(nodes, neighbours))
      }
    }
    const oneWay = cuts('random', { oneWayShare: 0.3 }).map(fault => 'oneWay' in fault && fault.oneWay)
    assert.ok(Math.abs(oneWay.filter(Boolean).length / oneWay.length - 0.3) < 0.1)
  })

  it('last at least the minimum length of a partition', () => {
    const faults = draw({ partitionShare: 0.3, partitionTime: 100, partitionMin: 60 })
    const lengths = faults.flatMap(({ time, kind }, i) => (kind === 'heal' ? [time - faults[i - 1].time] : []))
    assert.ok(lengths.slice(0, -1).every(length => length >= 60 - 1e-9))
    assert.ok(new Set(lengths).size > lengths.length / 2)
  })
})

describe('arrivals', () => {
  const arrivals = (values: object) =>
    drawArrivals(parseScenario({ nodes: 50, interval: 2, ...values }, 'test'), new Random(3))

  it('differ between nodes at the same total rate', () => {
    const { intervals } = arrivals({ speedSpread: 0.7 })
    assert.ok(Math.abs(intervals.reduce((sum, interval) => sum + 1 / interval, 0) - 25) < 1e-9)
    assert.equal(new Set(intervals).size, 50)
  })

  it('are equal for all nodes, and aligned or spread', () => {
    const aligned = arrivals({ warmup: 5 })
    assert.deepEqual([new Set(aligned.intervals), new Set(aligned.firstInputs)], [new Set([2]), new Set([7])])
    const spread = arrivals({ phases: 'spread', period: 3 })
    assert.equal(new Set(spread.firstTicks).size, 50)
    assert.ok(spread.firstInputs.every(time => time < 2) && spread.firstTicks.every(time => time < 3))
  })
})

describe('a disk', () => {
  const saved = (updates: number) => ({ predictor: { id: { updates } }, lineage: [] }) as unknown as Saved
  const updatesOn = (disk: SimulatedDisk) => disk.stored?.predictor.id.updates

  const create = () => {
    const host = { now: 0, timers: 0, startTimer: () => void host.timers++ }
    return { host, disk: new SimulatedDisk({ diskTime: 10, period: 1 }, host) }
  }
  const segment = (number: number) => ({ kind: 'segment', number, epoch: 1, inputs: [] }) as const

  it('has the last complete checkpoint, and nothing after it is erased', () => {
    const { host, disk } = create()
    const at = (now: number, act: () => void) => {
      host.now = now
      act()
    }
    disk.store(saved(1))
    at(5, () => assert.equal(disk.canStore, false))
    at(20, () => disk.store(saved(3)))
    at(25, () => disk.stop())
    assert.equal(updatesOn(disk), 1)
    at(30, () => disk.store(saved(4)))
    at(40, () => disk.stop())
    assert.equal(updatesOn(disk), 4)
    disk.erase()
    assert.equal(disk.stored, undefined)
  })

  it('stores a checkpoint after the records before it, and loses what is not complete when the node stops', () => {
    // Appends end at 1 and 2, and the checkpoint at 12.
    for (const stop of [0.5, 1.5, 2.5, 11.5, 12.5]) {
      const { host, disk } = create()
      const left: number[] = []
      disk.append([segment(1)], 1)
      disk.whenDurable(() => left.push(1))
      disk.append([segment(2)], 2)
      disk.whenDurable(() => left.push(2))
      disk.store(saved(1))
      assert.deepEqual(left, [])
      const writes = Math.min(2, Math.floor(stop))
      for (host.now = 1; host.now <= writes; host.now++) disk.appended()
      assert.equal(host.timers, Math.min(2, writes + 1))
      host.now = stop
      disk.stop()
      assert.deepEqual(left, [1, 2].slice(0, writes))
      assert.equal(disk.journal.length, writes)
      assert.equal(disk.journaledInputs, writes)
      assert.equal(updatesOn(disk), stop > 12 ? 1 : undefined)
    }
  })
})
