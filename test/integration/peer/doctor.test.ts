/** `admb doctor --peer` with a running peer. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { MAIN, PeerProcesses } from '../../support/peer-processes.js'

interface Report {
  readonly ok: boolean
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

function doctor(
  ...args: string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, 'doctor', ...args], (error, stdout, stderr) => {
      resolve({ code: (error?.code as number | undefined) ?? 0, stdout, stderr })
    })
  })
}

describe('admb doctor --peer', function () {
  this.timeout(60_000)
  const processes = new PeerProcesses()
  after(() => processes.stop())

  it('checks each step of the connection to a peer, and reports what the peer learns', async () => {
    const peer = await processes.start('--dimension', '4', '--batch', '16').ready()
    const [address] = peer.latest.addresses
    const { code, stdout } = await doctor('--peer', address, '--json')
    const { ok, checks } = JSON.parse(stdout) as Report
    assert.deepEqual([code, ok, checks.length], [0, true, 8], stdout)
    assert.match(checks[7].detail, /it learns model logistic, dimension 5/)
    assert.match((await doctor('--peer', address)).stdout, /^ok +name .*\nok +route /)
  })

  it('compares the model of a directory, with the identity of its peer', async () => {
    const dir = join(await processes.scratch(), 'state')
    const mine = await processes.start('--dimension', '4', '--batch', '16', '--dir', dir).ready()
    await mine.stop()
    const [same, other] = await Promise.all(
      ['16', '32'].map(batch => processes.start('--dimension', '4', '--batch', batch).ready())
    )
    const report = await doctor('--peer', same.latest.addresses[0], '--dir', dir, '--json')
    assert.equal((JSON.parse(report.stdout) as Report).ok, true, report.stdout)
    const { code, stdout } = await doctor('--peer', other.latest.addresses[0], '--dir', dir)
    assert.equal(code, 1)
    assert.match(stdout, /FAIL model +it has batch 32, the one in --dir 16; start both with the same --batch/)
  })

  it('reports an invalid address', async () => {
    const { code, stderr } = await doctor('--peer', 'localhost:4280')
    assert.equal(code, 1)
    assert.match(stderr, /^admb: "localhost:4280" is not a TCP multiaddress: write it like/)
  })
})
