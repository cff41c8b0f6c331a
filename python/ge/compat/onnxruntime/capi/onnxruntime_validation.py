"""Checks of the system, which GE does not need."""

from .build_and_package_info import __version__, package_name


def check_distro_info():
    pass


def get_package_name_and_version_info():
    return package_name, __version__, ""


def check_training_module():
    return False, package_name, __version__, ""
