# The one list of Debian packages that Lockstep needs. Sourced by quickstart.sh and test.sh.

# Needed to build and run the program. oneDNN's CMake package requires OpenCL's headers.
build_packages=(
  g++ cmake ninja-build ccache
  libdnnl-dev ocl-icd-opencl-dev libhwy-dev libfmt-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev
  zlib1g-dev libpng-dev libjpeg62-turbo-dev libssl-dev libcpp-httplib-dev libprotobuf-dev protobuf-compiler
  libsqlite3-dev libgrpc++-dev libre2-dev pkg-config libgloo-dev libopenmpi-dev openmpi-bin iproute2
  ca-certificates dataset-fashion-mnist
)

# Needed in addition to test it.
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev
  clang clang-format clang-tidy lld libomp-dev libclang-rt-14-dev python3-venv openssl
  chromium chromium-driver zsh fish
  openssh-server openssh-client etcd-server etcd-client
  slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
)

# install_missing PACKAGE...: installs missing packages; needs root or sudo only then.
install_missing() {
  if ! command -v dpkg-query > /dev/null; then
    echo "this is not Debian: make sure that the contents of these packages are installed: $*" >&2
    return 0
  fi
  local package missing=()
  for package in "$@"; do
    if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" != installed ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then return 0; fi

  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo > /dev/null; then
      echo "packages are missing, and installing them needs root or sudo; as root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  "${apt[@]}" update < /dev/null || echo "apt-get update failed; trying with the present package lists" >&2
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" < /dev/null > /dev/null
}
