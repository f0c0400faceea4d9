/** `admb keygen`: network keys, and identities for allow-lists written before the peers start. */
import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { Store } from '../../storage/index.js'
import { UsageError } from '../errors.js'
import { withCommon } from '../options.js'
import { print, printJson } from '../output.js'

export function keygenCommand(program: Command): Command {
  const command = program.command('keygen').description('make keys')
  withCommon(command.command('network'))
    .description('a network key: only peers that have it can connect')
    .requiredOption('--out <file>', 'where to write it; never overwritten')
    .action(networkKey)
  withCommon(command.command('identity'))
    .description('an identity in a new state directory; prints the peer id, as allow-lists hold it')
    .requiredOption('--dir <dir>', 'the state directory to make')
    .action(identity)
  return command.addHelpText(
    'after',
    '\nExamples:\n  admb keygen network --out net.key\n  admb keygen identity --dir state >> allowed.txt'
  )
}

async function networkKey({ out, json }: { out: string; json?: boolean }): Promise<void> {
  const { generateNetworkKey } = await import('../../network/index.js')
  try {
    await writeFile(out, generateNetworkKey(), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new UsageError(`${out} exists already and is left as it is: give another --out`)
    throw new UsageError(`cannot write ${out} (${code}): check the path after --out`)
  }
  if (json) printJson({ command: 'keygen', kind: 'network', file: out })
  else print(`wrote ${out}: copy it to every peer over a safe channel and start them with --network-key ${out}`)
}

async function identity({ dir, json }: { dir: string; json?: boolean }): Promise<void> {
  const { encodeIdentityKey, generateIdentityKey, peerIdOf } = await import('../../network/index.js')
  const store = await Store.open(dir)
  try {
    if (store.identity)
      throw new UsageError(`${dir} holds an identity already and is left as it is: give another --dir`)
    const key = await generateIdentityKey()
    await store.create(encodeIdentityKey(key))
    if (json) printJson({ command: 'keygen', kind: 'identity', id: peerIdOf(key), dir })
    else print(peerIdOf(key))
  } finally {
    await store.close()
  }
}
