import type { HelpText } from './help-texts.js'

/** Options whose values are files or folders. */
const OF_FILES = /<(?:path|file|log\.\.\.)>/

/** Completion of commands, options and files for bash, of the help texts. */
export function bashCompletion([, ...commands]: readonly HelpText[]): string {
  const names = commands.map(({ name }) => name).join(' ')
  const cases = commands.map(({ name, options }) => `  ${name}) options='${options.flatMap(({ flags }) => longOf(flags)).join(' ')}' ;;`)
  const files = commands.flatMap(({ options }) =>
    options.filter(({ flags }) => OF_FILES.test(flags)).flatMap(({ flags }) => namesOf(flags)),
  )
  return `# bash completion for sluicegate
_sluicegate() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} options
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '${names} --help --version' -- "$word")
    return
  fi
  case $before in
  ${[...new Set(files)].join(' | ')})
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
    ;;
  esac
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  *) return ;;
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _sluicegate sluicegate
`
}

function namesOf(flags: string): string[] {
  return flags.match(/(?<![\w-])--?[a-z][\w-]*/g) ?? []
}

function longOf(flags: string): string[] {
  return namesOf(flags).filter((name) => name.startsWith('--'))
}
