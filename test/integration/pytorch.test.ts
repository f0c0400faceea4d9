/** The programs of `docs/tutorials/pytorch.md`: Python computes the gradients of real peers. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import type { AuditReport } from '../../src/peer/audit.js'
import { admbJson } from '../support/admb-command.js'
import { blocks } from '../support/documents.js'
import { MAIN, PeerProcesses, until } from '../support/peer-processes.js'
import { hasPython, PYTHON, runPython } from '../support/python.js'

const PAGE = 'docs/tutorials/pytorch.md'
const program = (mark: string) => blocks(mark, PAGE, 'python').join('\n')

describe('a Python program', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  const programs: ChildProcess[] = []
  before(function () {
    if (!hasPython()) this.skip()
  })
  afterEach(async () => {
    for (const child of programs.splice(0)) child.kill('SIGKILL')
    await processes.stop()
  })

  it('computes gradients without any package', async () => {
    const dir = join(await processes.scratch(), 'peer')
    const options = ['--learner', 'external', '--dir', dir, '--rule', 'adam,step=0.1', '--batch', '4']
    const peer = processes.start(...options)
    const path = `socket_path = ${JSON.stringify(`${dir}.sock`)}\n`
    const output = await runPython(path + program('python worker'))
    assert.equal(output, '[2.0, 3.0]\n')
    await peer.ready()
    await until('the end', async () => {
      const { problem, inputs } = await peer.fetchStatus()
      return problem !== undefined && inputs === 500
    })
  })

  it('tests, then trains row by row at a peer, as in River', async () => {
    const folder = await processes.scratch()
    const data = join(folder, 'first.csv')
    await writeFile(data, 'a,b,label\n0.5,-0.25,yes\n-0.25,0.5,no\n0.75,0.25,yes\n0.25,0.75,no\n')
    const peer = processes.start('--data', data, '--label', 'label', '--batch', '8')
    await peer.ready()
    const output = await runPython(await readFile('python/examples/river_loop.py', 'utf8'), peer.latest.http as string)
    const [, accuracy] = /accuracy ([\d.]+), True/.exec(output) as RegExpExecArray
    assert.ok(Number(accuracy) > 0.85, output)
  })

  it('is told why its peer does not take it', async () => {
    const dir = join(await processes.scratch(), 'peer')
    processes.start('--learner', 'external', '--dir', dir, '--data', 'digits')
    const failing = `from array import array
from admb import Block, Refused, Worker
try: Worker([Block("w", 2)], [array("f", [0, 0])], ${JSON.stringify(`${dir}.sock`)}, wait=30)
except Refused as error: print(error)`
    assert.match(await runPython(failing), /the model and the data are those of a program .* remove the option data/)
  })

  it('keeps its parameters while its peer is away, and is told that no socket can have the path', async () => {
    const socket = JSON.stringify(join(await processes.scratch(), 'peer.sock'))
    const text = `import subprocess
from array import array
from admb import Block, Lost, Worker
from admb.worker import start_peer
try: Worker([Block("w", 2)], [array("f", [0, 0])], "/tmp/" + 120 * "x")
except ValueError as error: print(error)
options = ("--listen", "/ip4/127.0.0.1/tcp/0", "--http", "off")
command = ${JSON.stringify([process.execPath, MAIN])}
peer = start_peer(${socket}, rule="adam,step=0.1", batch=4, options=options, command=command, log=subprocess.DEVNULL)
worker = Worker([Block("w", 2)], [array("f", [0, 0])], ${socket})
while worker.updates < 3 or worker.generation % 2 == 0:
    worker.sums[0][0][:] = array("f", [1, 1])
    worker.add(0, worker.next, 1, 0.0)
before = list(worker.parameters[0])
print(worker.generation, before[0] != 0)
peer.kill()
peer.wait()
worker.wait = 0.3
for attempt in range(2):
    try:
        while True: worker.take()
    except Lost: pass
    try: worker.resume()
    except Lost: print(list(worker.parameters[0]) == before)
`
    const [path, generation, ...kept] = (await runPython(text)).trim().split('\n')
    assert.match(path, /give a shorter path/)
    assert.match(generation, /^\d*[13579] True$/, 'another generation than that of a start')
    assert.deepEqual(kept, ['True', 'True'])
  })

  describe('with PyTorch', () => {
    before(function () {
      if (!hasPython('torch,numpy')) this.skip()
    })

    /** Starts the program of a site, whose peer listens on a free port. @returns what it prints, and the address of its peer */
    async function start(text: string, folder: string, ...args: string[]) {
      const env = {
        ...process.env,
        ADMB: `${process.execPath} ${MAIN}`,
        OMP_NUM_THREADS: '1',
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONPATH: [resolve('python'), process.env.PYTHONPATH].filter(Boolean).join(delimiter)
      }
      // Several peers on one machine have no port of their own.
      const free = text.replaceAll(
        'join=join',
        `join=join, options=("--keep-journal", "--http", "off", "--listen", "/ip4/127.0.0.1/tcp/0")`
      )
      const child = spawn(PYTHON, ['-u', '-c', free, ...args], { cwd: folder, env })
      programs.push(child)
      let output = ''
      let errors = ''
      child.stdout.on('data', bytes => (output += bytes))
      child.stderr.on('data', bytes => (errors += bytes))
      const code = new Promise<number | null>(done => child.once('close', done))
      await until('the address', () => {
        assert.equal(child.exitCode, null, errors)
        return output.includes('/p2p/')
      })
      const [address] = /\/ip4\/127.0.0.1\S+/.exec(output) as RegExpExecArray
      return { code, address, child, output: () => output, errors: () => errors }
    }

    const learner = program('python learner').replace('epochs=500', 'epochs=2')
    const local = learner
      .replace('with Learner(', `${program('python local').split('\n')[0]}\nwith Learner(`)
      .replace('rule="adam,step=0.01", batch=128', 'optimizer=optimizer, local_steps=10, batch=320')

    for (const [name, text] of [
      ['gradients', learner],
      ['local steps', local]
    ]) {
      it(`learns with two others by ${name}`, async () => {
        const folder = await processes.scratch()
        const first = await start(text, folder, '0')
        const others = await Promise.all(['1', '2'].map(site => start(text, folder, site, first.address)))
        for (const { code, output, errors } of [first, ...others]) {
          assert.equal(await code, 0, errors())
          const [, updates, accuracy] = /(\d+) updates, accuracy ([\d.]+)/.exec(output()) as RegExpExecArray
          assert.ok(Number(updates) > 20 && Number(accuracy) > 0.9, output())
        }
      })
    }

    /** A program of `python/examples`, each of whose peers listens on a free port. @returns what each site prints last */
    async function runExample(name: string, sites: number): Promise<string[]> {
      const folder = await processes.scratch()
      const text = await readFile(resolve('python/examples', name), 'utf8')
      const first = await start(text, folder, '0')
      const others = Array.from({ length: sites - 1 }, (_, k) => start(text, folder, String(k + 1), first.address))
      const all = [first, ...(await Promise.all(others))]
      for (const { code, errors } of all) assert.equal(await code, 0, errors())
      return all.map(({ output }) => output().trim().split('\n').at(-1) ?? '')
    }

    const numbersOf = (line: string) => [...line.matchAll(/[\d.]+/g)].map(([text]) => Number(text))

    it('learns digits with a CNN at three peers, batch norms included', async function () {
      if (!hasPython('torch,sklearn')) this.skip()
      for (const line of await runExample('digits_cnn.py', 3)) {
        const [updates, accuracy] = numbersOf(line)
        assert.ok(updates >= 10 && accuracy > 0.9, line)
      }
    })

    it('learns characters with a GPT at two peers', async () => {
      for (const line of await runExample('char_gpt.py', 2)) {
        const [updates, before, after] = numbersOf(line)
        assert.ok(updates >= 5 && before > 4 && after < 3, line)
      }
    })

    it('learns embeddings from sparse gradients at two peers', async () => {
      for (const line of await runExample('embedding.py', 2)) {
        const [updates, error] = numbersOf(line)
        assert.ok(updates > 50 && error < 0.3, line)
      }
    })

    it('continues where it was when it is started again', async () => {
      const folder = await processes.scratch()
      const [head] = learner.split('with Learner')
      const part = `${head}
def learn(end):
    with Learner(model, rule="adam,step=0.01", batch=128, join=join, state="state") as learner:
        before = learner.worker.next
        for rows in learner.spans(len(x), batch=32):
            learner.step(loss_fn(model(x[rows]), y[rows]))
            if learner.worker.next >= end: break
        print("inputs", before, learner.worker.next, learner.updates, flush=True)
learn(2000)
learn(4000)`
      const { code, output, errors } = await start(part, folder, '0')
      assert.equal(await code, 0, errors())
      const runs = [...output().matchAll(/inputs (\d+) (\d+) (\d+)/g)].map(([, ...numbers]) => numbers.map(Number))
      assert.deepEqual(
        runs.map(([before, after]) => [before, after]),
        [
          [0, 2016],
          [2016, 4000]
        ]
      )
      assert.ok(runs[1][2] > runs[0][2] && runs[0][2] > 10, output())
    })

    it('refuses a network with other local steps, and learns from the newest predictor after an average', async () => {
      const folder = await processes.scratch()
      const text = `import sys
import torch
from admb.torch import Learner, Refused
join = ()
torch.manual_seed(1)
model = torch.nn.Linear(3, 1)
def learner(**options):
    return Learner(model, state="state", join=join, **options)
def loss(): return (model(torch.ones(4, 3)) ** 2).mean()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with learner(optimizer=optimizer, local_steps=3, batch=12) as one:
    for count, name in enumerate(("averaged", "state_dict", "take")):
        one.step(loss(), 4)
        if name == "averaged":
            with one.averaged(): pass
        else: getattr(one, name)()
        print(name, one.worker.next == 4 * (count + 1), one._seen == one.worker.generation, flush=True)
    one.step(loss(), 4)
    try:
        while True: one.step(loss() * float("nan"), 4)
    except ValueError: pass
    print("finite", bool(torch.isfinite(loss())))
try: learner().close()
except Refused as error: print(error)
`
      const { code, output, errors } = await start(text, folder)
      assert.equal(await code, 0, errors())
      for (const name of ['averaged', 'state_dict', 'take']) assert.match(output(), new RegExp(`${name} True True`))
      assert.match(output(), /finite True/)
      assert.match(output(), /the network learns with 3 local steps, and this program makes 1: give an optimizer/)
    })

    it('keeps computing gradients while its peer takes a sum', async () => {
      const text = `import signal, threading
import torch
from admb.torch import Learner
join = ()
torch.manual_seed(1)
model = torch.nn.Linear(3, 1)
steps, stopped = 0, 0
def go_on():
    global stopped
    stopped = steps
    learner._process.send_signal(signal.SIGCONT)
with Learner(model, rule="adam,step=0.01", batch=120, join=join, state="state") as learner:
    learner._process.send_signal(signal.SIGSTOP)
    threading.Timer(2, go_on).start()
    while steps < 20:
        learner.step((model(torch.ones(4, 3)) ** 2).mean(), 4)
        steps += 1
    learner.take()
    print("steps", stopped, learner.worker.next, flush=True)
`
      const { code, output, errors } = await start(text, await processes.scratch())
      assert.equal(await code, 0, errors())
      assert.match(output(), /steps 1 80\n/)
    })

    it('hands over inputs that it learns again as it does new ones, several steps at once', async () => {
      const folder = await processes.scratch()
      const [head, made] = local.split(/(?=\nwith Learner.*\n)/)
      // Without carrying over, an update leaves the last gradients of the other peer unused.
      const options =
        '("--period", "100,carry=0", "--keep-journal", "--http", "off", "--listen", "/ip4/127.0.0.1/tcp/0")'
      const text = `${head}
${made.trim().split('\n')[0].replace('join=join', `join=list(join), options=${options}`)}
    steps, sums, add = 0, 0, learner.worker.add
    def counted(slot, first, count, *rest, **others):
        global sums
        sums += first == learner.worker.again[0] and count > 0 and learner.worker.again[1] > first
        return add(slot, first, count, *rest, **others)
    learner.worker.add = counted
    print("joined", flush=True)
    sys.stdin.readline()
    for rows in learner.spans(len(x), batch=32, epochs=2):
        steps += learner._span[2]
        learner.step(loss_fn(model(x[rows]), y[rows]))
    learner.take()
    print("again", steps, sums, learner.worker.again, flush=True)
`
      const first = await start(text, folder, '0')
      const all = [first, await start(text, folder, '1', first.address)]
      await until('both have joined', () => all.every(({ output }) => output().includes('joined')))
      for (const { child } of all) child.stdin.end('go\n')
      const again = [0, 0]
      for (const { code, output, errors } of all) {
        assert.equal(await code, 0, errors())
        const [, steps, sums] = /again (\d+) (\d+) \(/.exec(output()) as RegExpExecArray
        again[0] += Number(steps)
        again[1] += Number(sums)
      }
      const [steps, sums] = again
      assert.ok(steps > 10 && sums <= steps / 2, `${sums} sums of ${steps} steps`)
      const dirs = ['0', '1'].flatMap(site => ['--dir', join(folder, `state-${site}`)])
      const { violations, peers } = (await admbJson(['audit', ...dirs])) as AuditReport
      const runs = peers.flatMap(peer => peer.runs.map(({ twice, unknown }) => [twice, unknown]))
      assert.deepEqual([violations, runs.flat(2)], [[], []])
    })

    for (const [name, text] of [
      ['gradients', learner],
      ['local steps', local]
    ])
      it(`starts its peer again when it was killed, and uses each input once by ${name}`, async () => {
        const folder = await processes.scratch()
        const [head, made] = text.split(/(?=\nwith Learner.*\n)/)
        const [opening] = made.trim().split('\n')
        const program = `${head}
from admb.torch import Lost
${opening}
    killed, resumed = learner._process, 0
    while learner.worker.next < 4000:
        try:
            for rows in learner.spans(len(x), batch=32):
                learner.step(loss_fn(model(x[rows]), y[rows]))
                if learner.worker.next > 2000 and killed.poll() is None:
                    killed.kill()
        except Lost:
            learner.resume()
            resumed += 1
    learner.take()
    print("end", learner.worker.next, learner.worker.again, resumed, learner.updates > 10)
`
        const { code, output, errors } = await start(program, folder, '0')
        assert.equal(await code, 0, errors())
        assert.match(output(), /end 4000 \(0, 0\) 1 True/)
        const { violations, peers } = (await admbJson(['audit', '--dir', join(folder, 'state-0')])) as AuditReport
        assert.deepEqual(violations, [])
        const runs = peers[0].runs.map(({ twice, unused, unknown }) => [twice, unused, unknown])
        assert.deepEqual(runs.flat(2), [])
      })
  })
})
